# frozen_string_literal: true

# The board is made of its moves: they are kept for a day.
pubsub_history 1_000
pubsub_history_age 86_400
