# frozen_string_literal: true

require "heddle"

# Prices that market.rb publishes go to every browser that listens.
class Prices
  # Messages that a page begins with.
  HISTORY = 60

  def call(env)
    return [404, {}, []] unless env["PATH_INFO"] == "/prices"

    Heddle::EventStream.response("prices", since: env["HTTP_LAST_EVENT_ID"] || beginning)
  end

  private

  # A position is "epoch:offset". Offsets count the messages of all topics, and here there is one topic.
  def beginning
    epoch, offset = Heddle::PubSub.position("prices").split(":")
    "#{epoch}:#{[offset.to_i - HISTORY, 0].max}"
  end
end

use Rack::Static, root: File.join(__dir__, "public"), urls: { "/" => "/index.html", "/ticker.js" => "/ticker.js" },
                  header_rules: [[:all, { "content-security-policy" => "script-src 'self'" }]]

run Prices.new
