# frozen_string_literal: true

require_relative "../rails_app"
require "solid_cache"

tables = schema_of("solid_cache", "lib/generators/solid_cache/install/templates/db/cache_schema.rb")
rails_application(schema: tables) do |config|
  config.cache_store = :solid_cache_store
end
Rails.cache.write("count", 0)
got = clients do |number|
  Rails.cache.write("key #{number}", "value #{number}")
  [Rails.cache.read("key #{number}"), Rails.cache.fetch("other #{number}") { number }, Rails.cache.increment("count")]
end
expected = (0...CLIENTS).map { |number| ["value #{number}", number] }
proves("8 tasks read what they have written", got.map { |value, other,| [value, other] } == expected)
proves("8 increments of one key are 8", got.map(&:last).sort == [*1..CLIENTS])
