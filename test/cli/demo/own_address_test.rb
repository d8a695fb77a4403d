# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require "net/http"
require "socket"
require "support/served_process"

# The panels send requests to their own server, whatever the Host header of the client says.
class DemoOwnAddressTest < Minitest::Test
  ADDRESS = %r{(https?://[^\s/]+:\d+)}

  [%w[-b tls://localhost:0], %w[-b tcp://127.0.0.1:0], %w[-b tcp://127.0.0.1:0 -w 2]].each do |arguments|
    define_method("test_host_header_does_not_choose_the_port_with_#{arguments.drop(1).join(" ")}") do
      served = ServedProcess.new([*ServedProcess::HEDDLE, "demo", *arguments], address: ADDRESS)
      other = TCPServer.new("127.0.0.1", 0)
      answer = fifty(served.uri, "x:#{other.addr[1]}")

      assert_equal :wait_readable, other.accept_nonblock(exception: false), answer
      assert_equal 50, answer.scan('"status":200').size, answer if served.uri.scheme == "http"
    ensure
      served&.stop
      other&.close
    end
  end

  def test_fifty_requests_are_refused_without_a_tcp_address
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/fifty", "HTTP_HOST" => "x:1", "SERVER_PORT" => "1" }
    status, _, body = Heddle::CLI::Demo.new(urls: -> { ["unix:/tmp/x"] }).call(env)

    assert_equal [400, ["This panel works only if `heddle demo` listens on a TCP address.\n"]], [status, body]
  end

  def fifty(uri, host)
    http = Net::HTTP.new(uri.host, uri.port)
    http.use_ssl = uri.scheme == "https"
    http.verify_mode = OpenSSL::SSL::VERIFY_NONE
    http.get("/fifty", "Host" => host).body
  end
end
