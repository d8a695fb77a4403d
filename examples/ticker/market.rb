# frozen_string_literal: true

# Publishes prices until Ctrl-C, from a process that is none of the server's: ruby market.rb [unix:SOCKET]
require "heddle"

prices = { "gold" => 71.2, "silver" => 0.88, "copper" => 0.0091 }
Heddle::PubSub.server = ARGV.first

begin
  loop do
    Heddle::PubSub.publish("prices", prices)
    sleep 1
    prices.transform_values! { |price| (price * rand(0.99..1.01)).round(5) }
  end
rescue Heddle::PubSub::UnreachableError => e
  abort "#{e.message}\nStart `heddle serve` in this folder first."
rescue Interrupt
  # Ctrl-C ends it.
end
