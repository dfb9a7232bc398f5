"""Who is there: restarts, late wills, two boards with one id, and what a board lacks."""

from msgspec.structs import replace

from coordinator.fleet import DUPLICATE_SECONDS, Fleet, Wanted
from edged.messages import Birth, PoolOffer

WANTED = Wanted("digits", "h", "digits", "f")


def birth(boot: str = "one", conn: int = 1, link: str = "up", host: str = "pi") -> Birth:
    pools = {"digits": PoolOffer("f", 100, ("digits",))}
    return Birth("b1", boot, conn, link, host=host, address="10.0.0.9", tasks={"digits": "h"}, pools=pools)


def test_a_will_says_that_the_link_is_lost_and_a_birth_that_it_is_back() -> None:
    fleet = Fleet()
    assert fleet.hear(birth(), 0) == "new"
    assert fleet.hear(birth(link="lost"), 1) == "lost"
    assert fleet.all_links_down
    assert fleet.hear(birth(conn=2), 2) == "back"
    assert not fleet.all_links_down


def test_the_will_of_an_older_connection_is_ignored() -> None:
    fleet = Fleet()
    fleet.hear(birth(conn=2), 0)
    assert fleet.hear(birth(conn=1, link="lost"), 1) == "ignored"
    assert fleet.lack("b1", WANTED, False, 1) == ""


def test_the_will_of_a_former_process_is_ignored() -> None:
    fleet = Fleet()
    fleet.hear(birth("one"), 0)
    assert fleet.hear(birth("two"), 1) == "restarted"
    assert fleet.hear(birth("one", link="lost"), 2) == "ignored"
    assert fleet.lack("b1", WANTED, False, 2) == ""


def test_a_boot_that_comes_back_shows_two_boards_with_one_id() -> None:
    fleet = Fleet()
    fleet.hear(birth("one", host="kitchen"), 0)
    fleet.hear(birth("two", host="attic"), 1)
    assert fleet.hear(birth("one", conn=2, host="kitchen"), 2) == "duplicate"
    lack = fleet.lack("b1", WANTED, False, 3)
    assert "duplicate id" in lack
    assert "clears by itself 150 s later" in lack
    assert "kitchen" in lack
    assert "attic" in lack
    assert fleet.lack("b1", WANTED, False, 3 + DUPLICATE_SECONDS) == ""


def test_each_thing_that_a_board_lacks_is_named() -> None:
    whole = birth()
    offer = whole.pools["digits"]
    table = {
        "": whole,
        "link lost": replace(whole, link="lost"),
        "stopped": replace(whole, link="closed"),
        "speaks protocol (9,)": replace(whole, protocols=(9,)),
        "has no task digits": replace(whole, tasks={}),
        "torch is missing": replace(whole, tasks={}, task_errors={"digits": "torch is missing"}),
        "source of task digits differs": replace(whole, tasks={"digits": "other"}),
        "has no pool digits": replace(whole, pools={}),
        "truncated": replace(whole, pools={"digits": replace(offer, error="truncated")}),
        "holds other data": replace(whole, pools={"digits": replace(offer, fingerprint="g")}),
    }
    for text, announced in table.items():
        fleet = Fleet()
        fleet.hear(announced, 0)
        lack = fleet.lack("b1", WANTED, False, 1)
        assert text in lack
        assert bool(text) == bool(lack)
    fleet = Fleet()
    fleet.hear(whole, 0)
    assert fleet.lack("b1", WANTED, True, 1) == "drained by the operator"
    assert fleet.lack("b2", WANTED, False, 1) == "was never heard of"
