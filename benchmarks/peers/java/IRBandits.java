import es.uam.eps.ir.knnbandit.data.preference.updateable.index.fast.SimpleFastUpdateableItemIndex;
import es.uam.eps.ir.knnbandit.data.preference.updateable.index.fast.SimpleFastUpdateableUserIndex;
import es.uam.eps.ir.knnbandit.recommendation.InteractiveRecommender;
import es.uam.eps.ir.knnbandit.recommendation.clusters.club.CLUBComplete;
import es.uam.eps.ir.knnbandit.recommendation.knn.similarities.stochastic.BetaStochasticSimilarity;
import es.uam.eps.ir.knnbandit.recommendation.knn.user.CollaborativeGreedy;
import es.uam.eps.ir.knnbandit.recommendation.knn.user.InteractiveUserBasedKNN;
import it.unimi.dsi.fastutil.ints.IntArrayList;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.stream.IntStream;

/** Policies of IRBandits, asked by `java.py` over pipes: `s user item …` is answered by an item, `l user item value` by nothing. */
class IRBandits {
    public static void main(String[] arguments) throws Exception {
        var users = SimpleFastUpdateableUserIndex.load(IntStream.range(0, Integer.parseInt(arguments[1])).boxed());
        var items = SimpleFastUpdateableItemIndex.load(IntStream.range(0, Integer.parseInt(arguments[2])).boxed());
        InteractiveRecommender<Integer, Integer> player = switch (arguments[0]) {
            case "knn" -> new InteractiveUserBasedKNN<>(users, items, true, true, Integer.parseInt(arguments[3]),
                    new BetaStochasticSimilarity(users.numUsers()));
            case "greedy" -> new CollaborativeGreedy<>(users, items, true, Double.parseDouble(arguments[3]), Double.parseDouble(arguments[4]));
            case "club" -> new CLUBComplete<>(users, items, true, Double.parseDouble(arguments[3]), Double.parseDouble(arguments[4]));
            default -> throw new IllegalArgumentException(arguments[0]);
        };
        player.init();
        var questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ");
            int user = Integer.parseInt(words[1]);
            if (words[0].equals("s")) {
                var offered = new IntArrayList();
                for (int word = 2; word < words.length; word++) offered.add(Integer.parseInt(words[word]));
                System.out.println(player.next(user, offered));
            } else {
                player.update(user, Integer.parseInt(words[2]), Double.parseDouble(words[3]));
            }
        }
    }
}
