"""Programs of others, within limits: a mistake, an endless loop, and one that asks Python for prices."""
import unisono

PRICES = {"bread": 2.5, "salt": 1.0}
engine = unisono.Engine("cpu:1")


def answer(program):
    """What one program gives, or why it gives nothing. It sees no files, and what it prints goes nowhere."""
    session = unisono.Session(engine=engine, device_bytes=1 << 20, print=lambda text: None)

    @session.function("def price(name: str) -> f64")
    def price(name):
        return PRICES[bytes(name).decode()]

    try:
        with session, session.limits(seconds=5, steps=10_000):
            return session.run(program, "request.uni")
    except unisono.LimitError as error:
        return f"too much: {error.summary}"
    except unisono.HostError as error:
        return f"no price for {error.__cause__}"
    except unisono.Error as error:
        message = error.messages[0]
        return f"line {message.place.line}, column {message.place.column}: {message.text} ({message.code})"


for request in ("sum(arange(5) ** 2)",
                "let x = [1, 2, 3]\nx + y",
                "var i = 0\nwhile true { i += 1 }",
                "load(\"/etc/passwd\")",
                "4 * price(\"bread\") + price(\"salt\")",
                "price(\"gold\")"):
    print(answer(request))
