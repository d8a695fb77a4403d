# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "server/tls_helpers"
require "cli/demo/browser"

# WebSockets of a real browser over TLS.
class WebSocketBrowserTest < Minitest::Test
  include WebSocketHelpers
  include TLSHelpers

  PAGE = <<~HTML
    <!doctype html><title>sockets</title><script>
    const log = window.log = []
    const digits = Array.from({ length: 20000 }, () => Math.random().toFixed(8)).join("").slice(0, 200000)
    window.dial = (path) => {
      const socket = new WebSocket(`wss://${location.host}${path}`)
      socket.onopen = () => { log.push("open"); socket.send("hello"); socket.send(digits) }
      socket.onmessage = (event) => {
        log.push(event.data.length)
        if (event.data.length > 100) socket.close(4001, "done")
      }
      socket.addEventListener("open", () => { window.extensions = socket.extensions })
      socket.onclose = (event) => log.push(`closed ${event.code} ${event.wasClean}`)
    }
    dial("/socket")
    </script>
  HTML

  def application(requests)
    socket = upgrading(Echo.new)
    lambda do |env|
      next [200, { "content-type" => "text/html" }, [PAGE]] if env["PATH_INFO"] == "/"
      next [404, {}, []] unless env["PATH_INFO"] == "/socket"

      requests << env.values_at("SERVER_PROTOCOL", "REQUEST_METHOD")
      @offers = env["HTTP_SEC_WEBSOCKET_EXTENSIONS"]
      socket.call(env)
    end
  end

  def visit(**)
    requests = []
    serving_tls(application(requests), lint: false, **) do
      @browser = Browser.new(need_program("chromium"), need_program("chromedriver"), insecure: true)
      @browser.visit("https://127.0.0.1:#{port}/")
      yield requests
    ensure
      @browser&.close
    end
  end

  def wait_for_entries(count)
    found = @browser.wait_for("log.length === #{count}", seconds: 20)
    flunk [@browser.run("return log"), *@browser.console].inspect unless found
  end

  # Both sockets end in order, so the second one comes over HTTP/2, too: browsers remember where that has failed.
  def test_sockets_are_streams_of_the_pages_connection_one_after_the_other
    visit(http2_websockets: true) do |requests|
      2.times do |round|
        @browser.run("dial('/socket')") if round > 0
        wait_for_entries(4 * (round + 1))
      end

      assert_equal ["open", 5, 200_000, "closed 4001 true"] * 2, @browser.run("return log")
      assert_equal [%w[HTTP/2 CONNECT]] * 2, requests
    end
  end

  # Over both protocols: 200,000 digits, compressed by either side.
  def test_the_browser_and_the_server_compress_messages
    [true, false].each do |http2_websockets|
      visit(http2_websockets:, websocket_deflate: true) do
        wait_for_entries(4)

        assert_match(/permessage-deflate/, @offers)
        assert_match(/\Apermessage-deflate.*server_no_context_takeover/, @browser.run("return extensions"))
        assert_equal ["open", 5, 200_000, "closed 4001 true"], @browser.run("return log")
      end
    end
  end

  def test_without_the_option_they_come_over_http1
    visit do |requests|
      wait_for_entries(4)

      assert_equal [%w[HTTP/1.1 GET]], requests
    end
  end
end
