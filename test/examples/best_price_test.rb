# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../../examples/best_price/best_price"
require_relative "../../examples/best_price/shops"
require_relative "../support/scheduled"
require_relative "served_example"

class BestPriceTest < Minitest::Test
  include Scheduled

  ROOT = File.expand_path("../..", __dir__)
  private_constant :ROOT

  # Shops that answer once all of them were asked: asked one after the other they would wait forever.
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

  def test_a_request_asks_them_at_once_and_the_next_one_opens_no_connection
    served = ServedExample.new("best_price", environment: { "SHOP_DELAY" => "0.05" })
    answers = Array.new(3) { JSON.parse(served.get("/").body) }

    assert_equal [{ "shop" => "shop 2", "price" => 17.5, "connections" => 3 }], answers.uniq
  ensure
    served&.stop
  end

  def test_in_puma_the_connections_are_kept_between_the_requests_of_all_its_threads
    puma = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-r#{File.join(ROOT, "bin/support/gem_paths")}",
            "-e", 'load Gem.activate_bin_path("puma", "puma")', "--", "-t", "2:2", "-b", "tcp://127.0.0.1:0"]
    served = ServedProcess.new(puma, environment: { "SHOP_DELAY" => "0.05" },
                                     folder: File.join(ROOT, "examples/best_price"))
    answers = Array.new(6) { JSON.parse(served.get("/").body) }

    assert_match(/Puma/, served.output)
    assert_equal [{ "shop" => "shop 2", "price" => 17.5, "connections" => 3 }], answers.uniq
  ensure
    served&.stop
  end

  def test_the_shops_are_asked_at_once_in_a_script_in_a_loop_and_in_threads
    best = { "shop" => "shop 2", "price" => 17.5 }

    assert_equal best, BestPrice.find(@shops.urls)
    assert_equal best, scheduled { BestPrice.find(@shops.urls) }
    2.times { assert_equal(best, in_thread { BestPrice.find(@shops.urls) }) }
    assert_equal 3, @shops.connections
  end
end
