# frozen_string_literal: true

require "heddle"

# Asks all shops at once for their price. The same code runs in a script, in a request of Heddle and in a thread of
# Puma; the connections to the shops are the process's, and are kept between requests.
module BestPrice
  CLIENT = Heddle::HTTP::Client.new(timeout: { total: 5 })

  # @param shops [Array<String>] their URLs
  # @return [Hash] the cheapest offer
  def self.find(shops)
    offers = Heddle.run { Heddle.map(shops) { |shop| CLIENT.get("#{shop}/price").json } }
    offers.min_by { |offer| offer["price"] }
  end
end

if $PROGRAM_NAME == __FILE__
  require "json"
  require_relative "shops"

  shops = Shops.new([19.9, 17.5, 21.0], delay: 1.5)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  puts JSON.generate(BestPrice.find(shops.urls))
  printf("%.2f s\n", Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
end
