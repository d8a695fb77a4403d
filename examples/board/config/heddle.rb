# frozen_string_literal: true

# The board is made of its moves.
pubsub_history 1_000
