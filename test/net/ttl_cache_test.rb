# frozen_string_literal: true

require "test_helper"
require "heddle/net/ttl_cache"

# The store of the resolver and of the DNS client.
class TTLCacheTest < Minitest::Test
  def test_answer_that_is_stored_while_another_thread_fetches_it_counts_once
    at_reading = nil
    cache = Heddle::Net::TTLCache.new(10, -> { at_reading&.call || 0 })
    cache.store("a", 1, 60)
    at_reading = lambda do
      at_reading = nil
      cache.store("a", 2, 60)
      0
    end
    cache.fetch("a")

    assert_equal [1, 1], [cache.count, cache.taken]
  end
end
