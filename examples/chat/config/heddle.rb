# frozen_string_literal: true

# A late comer reads what was said within the last day.
pubsub_history_age 86_400
