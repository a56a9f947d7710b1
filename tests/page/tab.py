"""A page in its own browser, the addresses of its views, and names that could break a page."""

from typing import Any

HOSTILE = [
    "<img src=x onerror=\"document.title='broken'\">",
    "</script><script>document.title='broken'</script>",
    "\"'><svg onload=document.title='broken'>",
    "'; DROP TABLE log; --",
    "${document.title='broken'}",
    "\u202eright to left\u202c",
    "שלום עולם",
    "مرحبا بالعالم",
    '=HYPERLINK(1),"quoted"',
    "#/try?user=somebody&n=9",
    "x" * 256,
    "👩‍👩‍👧‍👦" * 36,
]

VIEWS = {
    "live": "live-reward",
    "try?user=user+1&n=2": "try-item",
    "why?id={decision}": "why-items",
    "user?user=user+1": "user-ellipse",
    "items": "items-map",
    "whatif?user=user+1&item=item+3&rating=5": "whatif-after",
    "log?seq=200&user=user+1": "log-past",
}
"""Every view as an address, and what is there once it is drawn."""

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


class Tab:
    """One page in its own browser. It records errors."""

    def __init__(self, browser: Any, port: int, **options: Any) -> None:
        self.base = f"http://127.0.0.1:{port}/"
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.add_init_script(WATCH)
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: None if request.url.startswith((self.base, "blob:")) else self.foreign.append(request.url))

    def go(self, view: str) -> Any:
        self.page.goto(f"{self.base}#/{view}")
        return self.page

    def close(self) -> None:
        """After every test: no script error, no violation of the page's security policy, no request to another host."""
        violations = self.page.evaluate("window.violations")
        title = self.page.title()
        self.context.close()
        assert (self.errors, violations, self.foreign) == ([], [], [])
        assert title != "broken"
