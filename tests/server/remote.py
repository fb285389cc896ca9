"""A thread of a served graph, read and run through `RemoteGraph`."""

from langgraph.pregel.remote import RemoteGraph

import graph_retry
import graph_retry.threads

HIDDEN = r"hides the attempts of these calls: .*key `attempts`"


class Remote:
    """A thread of a served graph, spoken to with sync or async verbs."""

    def __init__(self, served, mode, config, client, name):
        self.served, self.mode, self.config = served, mode, config
        self.requests = []
        client.http.client.event_hooks["request"].append(mode.colour(self.requests.append))
        self.graph = RemoteGraph(name, **{"client" if mode.is_async else "sync_client": client})

    def invoke(self, given):
        return self.mode.invoke(self.graph, given, self.config)

    def resume(self, decision=None, **options):
        call = (graph_retry, "resume", self.graph, self.config, decision)
        return self.mode.call(*call, **options)

    def reviews(self):
        return self.mode.call(graph_retry, "pending_reviews", self.graph, self.config)

    def rewind(self, ledger=None, **change):
        call = (graph_retry.threads, "rewind", self.graph, self.config, ledger)
        return self.mode.call(*call, **change)

    def ledgers(self):
        """Read the ledgers, those forks left behind left out."""
        call = (graph_retry.threads, "attempts_of", self.graph, self.config)
        return [ledger for ledger in self.mode.call(*call) if ledger.current]

    def told(self):
        """Return who made the attempts of each call with what."""
        return [
            [(each["author"], ledger.params_at(each["number"])["n"]) for each in ledger.attempts]
            for ledger in self.ledgers()
        ]

    def calls(self):
        made = self.served.calls(self.config["configurable"]["thread_id"])
        return [each["n"] for each in made]

    def status(self):
        with self.served.sync_client() as client:
            return client.threads.get(self.config["configurable"]["thread_id"])["status"]
