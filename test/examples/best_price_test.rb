# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../../examples/best_price/best_price"
require_relative "../../examples/best_price/shops"
require_relative "../support/scheduled"

class BestPriceTest < Minitest::Test
  include Scheduled

  # Shops that answer once all of them were asked: asked one after the other they would wait for ever.
  class Together < Shops
    def initialize(prices)
      @lock = Mutex.new
      @all_asked = ConditionVariable.new
      @asked = 0
      super(prices, delay: prices.size)
    end

    private

    def sleep(count)
      @lock.synchronize do
        @asked += 1
        round = ((@asked - 1) / count) + 1
        @all_asked.broadcast
        @all_asked.wait(@lock) until @asked >= round * count
      end
    end
  end

  def setup
    @shops = Together.new([19.9, 17.5, 21.0])
  end

  def test_the_shops_are_asked_at_once_in_a_script_in_a_loop_and_in_threads
    best = { "shop" => "shop 2", "price" => 17.5 }

    assert_equal best, BestPrice.find(@shops.urls)
    assert_equal best, scheduled { BestPrice.find(@shops.urls) }
    2.times { assert_equal(best, in_thread { BestPrice.find(@shops.urls) }) }
    assert_equal 3, @shops.connections
  end
end
