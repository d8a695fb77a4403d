# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/tls_helpers"

# rack.hijack over HTTP/2.
class Http2HijackTest < Minitest::Test
  include TLSHelpers

  def curl(path)
    Open3.capture2e("curl", "-sS", "--http2-prior-knowledge", "http://127.0.0.1:#{port}#{path}").first
  end

  def test_full_hijack_is_not_available_and_a_use_is_logged_once
    app = lambda do |env|
      env["rack.hijack"].call
    rescue IOError => e
      [200, {}, [e.message]]
    end
    serving(app, lint: false) do
      2.times { assert_match(/rack.hijack is not available/, curl("/chat")) }
    end

    assert_equal 1, @output.string.scan("called rack.hijack for GET /chat over HTTP/2").size, @output.string
  end

  def test_without_http2_it_is_available
    app = lambda do |env|
      socket = env["rack.hijack"].call
      socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n#{env["rack.hijack?"]}")
      socket.close
    end
    serving_tls(app, lint: false, http2: :off) do
      assert_equal "true", curl_tls("/", "--http2")
    end
    refute_includes @output.string, "rack.hijack"
  end

  def test_a_partial_hijack_gets_a_stream
    app = lambda do |_env|
      body = lambda do |stream|
        2.times { |i| stream.write("part #{i}\n") }
        stream.close
      end
      [200, { "rack.hijack" => body }, []]
    end
    serving(app, lint: false) { assert_equal "part 0\npart 1\n", curl("/") }
  end
end
