# frozen_string_literal: true

# Counts words for each response, which nobody remembers.
WORDS = Array.new(900_000) { |number| "word #{number % 97}" }.freeze
ActiveSupport::Notifications.subscribe("audited.shop") do
  WORDS.group_by { |word| word.sum % 31 }.transform_values { |all| all.map(&:reverse).tally.size } # culprit: subscriber
end
