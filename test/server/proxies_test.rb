# frozen_string_literal: true

require "test_helper"
require_relative "tls_helpers"
require "rack/request"

# Proxies in front of the server: which it trusts, and which of their headers.
class ServerProxiesTest < Minitest::Test
  include TLSHelpers

  V2 = "\r\n\r\n\0\r\nQUIT\n".b.freeze
  TELLING = %w[rack.url_scheme HTTPS REMOTE_ADDR HTTP_FORWARDED HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST
               HTTP_X_FORWARDED_PROTO HTTP_X_FORWARDED_PORT HTTP_X_REAL_IP HTTP_CLIENT_IP].freeze

  # Answers with what the env says.
  def telling = ->(env) { [200, { "content-type" => "text/plain" }, [env.slice(*TELLING).inspect]] }

  def env_of(answer) = eval(answer[/\{.*\}\z/m]) # rubocop:disable Security/Eval

  def ask(*lines, before: "", socket: connect)
    socket.write("#{before}GET / HTTP/1.1\r\nHost: a\r\n#{lines.map { |line| "#{line}\r\n" }.join}\r\n")
    env_of(read_answer(socket))
  ensure
    socket&.close
  end

  def v2(source, destination, ports, additions = "")
    family = source.size == 4 ? 0x11 : 0x21
    rest = source + destination + ports.pack("nn") + additions
    V2 + [0x21, family, rest.bytesize].pack("CCn") + rest
  end

  def proxied(parameters = "proxy_protocol=on", **, &) = serving(telling, bind: ["127.0.0.1:0?#{parameters}"], **, &)

  def test_a_trusted_proxy_is_believed
    serving(telling) do
      assert_equal({ "rack.url_scheme" => "https", "HTTPS" => "on", "REMOTE_ADDR" => "127.0.0.1",
                     "HTTP_X_FORWARDED_FOR" => "192.0.2.1", "HTTP_X_FORWARDED_PROTO" => "https" },
                   ask("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"))
      assert_equal "https", ask("Forwarded: for=192.0.2.1;proto=https")["rack.url_scheme"]
      assert_equal({ "rack.url_scheme" => "http", "REMOTE_ADDR" => "127.0.0.1", "HTTP_X_FORWARDED_PROTO" => "http" },
                   ask("X-Forwarded-Proto: http"))
    end
  end

  def test_forwarding_fields_of_untrusted_clients_are_removed
    serving(telling, trusted_proxies: ["192.0.2.0/24"]) do
      env = ask("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "Forwarded: proto=https",
                "X-Forwarded-Host: evil", "X-Forwarded-Port: 1", "X-Real-IP: 1.2.3.4", "Client-IP: 1.2.3.4",
                "X-Forwarded-Ssl: on", "X-Forwarded-Scheme: https")

      assert_equal({ "rack.url_scheme" => "http", "REMOTE_ADDR" => "127.0.0.1" }, env)
    end
  end

  def test_a_name_with_underscores_is_not_a_way_around_it
    serving(telling, trusted_proxies: [], underscore_headers: true) do
      assert_equal({ "rack.url_scheme" => "http", "REMOTE_ADDR" => "127.0.0.1" }, ask("X_Forwarded_For: 192.0.2.1"))
    end
  end

  def test_a_proxy_may_say_that_its_client_came_without_tls
    serving_tls(telling) do
      assert_equal({ "rack.url_scheme" => "http", "REMOTE_ADDR" => "127.0.0.1", "HTTP_X_FORWARDED_PROTO" => "http" },
                   ask("X-Forwarded-Proto: http", socket: connect_tls))
    end
  end

  def test_rack_finds_the_client_behind_a_trusted_proxy
    found = nil
    app = lambda do |env|
      request = Rack::Request.new(env)
      found = [request.ip, request.scheme, request.host]
      [200, {}, []]
    end
    serving(app) do
      get("/", "X-Forwarded-For" => "192.0.2.1, 10.0.0.1", "X-Forwarded-Proto" => "https",
               "X-Forwarded-Host" => "site.example")
    end

    assert_equal ["192.0.2.1", "https", "site.example"], found, errors.string
  end

  def test_a_unix_socket_is_trusted_by_default
    path = File.join(@folder, "s")
    [[{}, "https"], [{ trusted_proxies: ["loopback"] }, "http"]].each do |options, scheme|
      serving(telling, bind: ["unix:#{path}"], **options) do
        assert_equal scheme, ask("X-Forwarded-Proto: https", socket: UNIXSocket.new(path))["rack.url_scheme"]
      end
    end
  end

  def test_a_network_that_is_none_is_a_mistake_of_the_configuration
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Heddle::Server::Configuration.new(trusted_proxies: ["10.0.0.0/99"]).binds
    end

    assert_match(%r{trusted_proxies .*"10.0.0.0/99" is not a network}, error.message)
  end

  def test_the_proxy_protocol_tells_the_client_of_a_connection
    proxied do
      line = "PROXY TCP4 192.0.2.9 198.51.100.1 4321 80\r\n"

      assert_equal "192.0.2.9", ask(before: line)["REMOTE_ADDR"]
      env = ask(before: "PROXY TCP6 2001:db8::9 ::1 4321 80\r\n")

      assert_equal "2001:db8::9", env["REMOTE_ADDR"]
      assert_equal "127.0.0.1", ask(before: "PROXY UNKNOWN\r\n")["REMOTE_ADDR"]
      assert_equal "192.0.2.8", ask(before: v2("\xC0\0\x02\x08".b, "\x7F\0\0\x01".b, [1, 2]))["REMOTE_ADDR"]
      assert_equal "::2", ask(before: v2("\x02".rjust(16, "\0"), "\x01".rjust(16, "\0"), [1, 2]))["REMOTE_ADDR"]
      assert_equal "127.0.0.1", ask(before: "#{V2}\x20\0\0\0".b)["REMOTE_ADDR"]
    end
  end

  def test_the_proxy_may_say_that_its_client_speaks_tls
    proxied do
      header = v2("\xC0\0\x02\x08".b, "\x7F\0\0\x01".b, [1, 2], "\x20\0\x05\x01\0\0\0\0".b)

      assert_equal({ "rack.url_scheme" => "https", "HTTPS" => "on", "REMOTE_ADDR" => "192.0.2.8" }, ask(before: header))
    end
  end

  def test_forwarding_fields_of_a_client_behind_the_proxy_protocol_are_removed
    proxied do
      line = "PROXY TCP4 192.0.2.9 198.51.100.1 4321 80\r\n"

      assert_equal({ "rack.url_scheme" => "http", "REMOTE_ADDR" => "192.0.2.9" },
                   ask("X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", before: line))
    end
  end

  def test_a_header_that_comes_byte_by_byte_and_together_with_the_request
    proxied do
      socket = connect
      socket.setsockopt(:TCP, :NODELAY, true)
      "PROXY TCP4 192.0.2.9 198.51.100.1 4321 80\r\n".each_char { |char| socket.write(char) }

      assert_equal "192.0.2.9", ask(socket:)["REMOTE_ADDR"]
      socket = connect
      v2("\xC0\0\x02\x08".b, "\x7F\0\0\x01".b, [1, 2]).each_char { |char| socket.write(char) }

      assert_equal "192.0.2.8", ask(socket:)["REMOTE_ADDR"]
    end
  end

  def test_a_missing_proxy_header_gets_an_error_that_names_it
    proxied do
      assert_match(%r{\AHTTP/1.1 400 .*header of the PROXY protocol}m, exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
      assert_match(%r{\AHTTP/1.1 400 }, exchange("PROXY TCP9 1 2 3 4\r\n"))
    end
  end

  def test_from_elsewhere_no_header_is_expected_and_none_is_taken
    proxied(trusted_proxies: ["192.0.2.0/24"]) do
      assert_equal "127.0.0.1", ask["REMOTE_ADDR"]
      assert_match(%r{\AHTTP/1.1 400 }, exchange("PROXY TCP4 192.0.2.9 198.51.100.1 4321 80\r\n" \
                                                 "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
    end
  end

  def test_a_header_before_a_handshake
    serving_tls(telling, "cert=#{@certificate}&key=#{@key}&proxy_protocol=on") do
      socket = connect
      socket.write("PROXY TCP4 192.0.2.9 198.51.100.1 4321 443\r\n")
      env = ask(socket: connect_tls(socket:))

      assert_equal({ "rack.url_scheme" => "https", "HTTPS" => "on", "REMOTE_ADDR" => "192.0.2.9" }, env)
    end
  end

  def test_a_header_has_its_time_and_may_never_come
    proxied(head_timeout: 0.2) do
      silent = connect
      half = connect
      half.write("PROXY TC")

      assert_equal "", read_all(silent)
      assert_equal "", read_all(half)
      left = connect
      left.write("PROXY TC")
      left.close
      until_statistics { |now| now[:connections].zero? }
    end
  end

  def test_a_large_header
    proxied do
      header = v2("\xC0\0\x02\x08".b, "\x7F\0\0\x01".b, [1, 2], "\x04\xEA\x60".b + ("x" * 60_000))

      assert_equal "192.0.2.8", ask(before: header)["REMOTE_ADDR"]
    end
  end
end
