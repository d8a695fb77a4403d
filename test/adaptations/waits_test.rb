# frozen_string_literal: true

require "test_helper"
require "json"
require "server/server_helpers"

# What gems wait for is named in the time account of a request.
class WaitsTest < Minitest::Test
  include ServerHelpers

  DELAY = 0.05

  def test_net_http_waits_for_http
    upstream = TCPServer.new("127.0.0.1", 0)
    answering = Thread.new do
      client = upstream.accept
      client.readpartial(1_000)
      sleep DELAY
      client.write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\na")
      client.close
    end
    url = URI("http://127.0.0.1:#{upstream.addr[1]}/")
    serving(->(_env) { [200, {}, [Net::HTTP.get(url)]] }, lint: false, log_format: :json) { get("/") }
    answering.join
    account = JSON.parse(output.string[/^.*"account".*$/])["account"]

    assert_operator account["http"], :>=, DELAY - 0.001
    refute_includes account, "io"
  ensure
    upstream.close
  end
end
