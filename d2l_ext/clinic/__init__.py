"""The clinic: hangs, and results that are wrong without an error.

| file | what it holds | chapter |
|---|---|---|
| `flight_recorder` | the last calls of each rank, and which rank is missing in which call | the trainer's command |
"""  # noqa: E501
