# frozen_string_literal: true

require "json"
require_relative "best_price"
require_relative "shops"

shops = Shops.new([19.9, 17.5, 21.0], delay: Float(ENV.fetch("SHOP_DELAY", "1.5")))

run lambda { |_env|
  body = BestPrice.find(shops.urls).merge("connections" => shops.connections)
  [200, { "content-type" => "application/json" }, [JSON.generate(body)]]
}
