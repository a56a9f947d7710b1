import es.uam.eps.ir.knnbandit.data.preference.index.fast.FastUpdateableItemIndex;
import es.uam.eps.ir.knnbandit.data.preference.index.fast.FastUpdateableUserIndex;
import es.uam.eps.ir.knnbandit.data.preference.index.fast.SimpleFastUpdateableItemIndex;
import es.uam.eps.ir.knnbandit.data.preference.index.fast.SimpleFastUpdateableUserIndex;
import es.uam.eps.ir.knnbandit.recommendation.knn.similarities.stochastic.BetaStochasticSimilarity;
import es.uam.eps.ir.knnbandit.recommendation.knn.user.InteractiveUserBasedKNN;
import es.uam.eps.ir.ranksys.fast.preference.SimpleFastPreferenceData;
import it.unimi.dsi.fastutil.ints.IntArrayList;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The nearest-neighbour bandit of kNNBandit, asked by `java.py` over pipes: `s user item …` is answered by an item, `l user item value` by nothing. */
class KNNBandit extends InteractiveUserBasedKNN<Integer, Integer> {
    KNNBandit(FastUpdateableUserIndex<Integer> users, FastUpdateableItemIndex<Integer> items, int neighbours) {
        super(users, items, SimpleFastPreferenceData.load(Stream.empty(), users, items), true, true, neighbours,
                new BetaStochasticSimilarity(users.numUsers()));
    }

    int choose(int user, IntArrayList offered) {
        availability.set(user, offered);
        return next(user);
    }

    void learn(int user, int item, double value) {
        updateMethod(user, item, value);
        trainData.updateRating(user, item, value);
    }

    public static void main(String[] arguments) throws Exception {
        var users = SimpleFastUpdateableUserIndex.load(IntStream.range(0, Integer.parseInt(arguments[1])).boxed());
        var items = SimpleFastUpdateableItemIndex.load(IntStream.range(0, Integer.parseInt(arguments[2])).boxed());
        var player = new KNNBandit(users, items, Integer.parseInt(arguments[3]));
        var questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ");
            int user = Integer.parseInt(words[1]);
            if (words[0].equals("s")) {
                var offered = new IntArrayList();
                for (int word = 2; word < words.length; word++) offered.add(Integer.parseInt(words[word]));
                System.out.println(player.choose(user, offered));
            } else {
                player.learn(user, Integer.parseInt(words[2]), Double.parseDouble(words[3]));
            }
        }
    }
}
