# frozen_string_literal: true

require "test_helper"
require "heddle/http"
require "heddle/rack"
require "rack/lint"
require_relative "support/env_builders"

class EnvBuilderTest < Minitest::Test
  include Heddle

  Connection = Struct.new(:remote_address, :local_address, :local_port)
  GET = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"

  def setup
    @builder = EnvBuilders::EnvBuilder.new(StringIO.new, nil)
  end

  # The env that an application gets, with Rack::Lint between.
  def env_of(text, **limits)
    head = HTTP::H1::HeadParser.new(HTTP::Limits.new(**limits)).parse(text.b)
    env = @builder.build(head, Connection.new("192.0.2.1", "198.51.100.1", 9_292))
    # Raises where the specification is not kept.
    ::Rack::Lint.new(->(_) { [204, {}, []] }).call(env.merge("rack.hijack" => -> {})).last.close
    env
  end

  def test_the_env_of_a_plain_request
    env = env_of("GET /a%20b?c=d&e HTTP/1.1\r\nHost: example.org:81\r\nUser-Agent: x\r\nX-One-Two: y\r\n\r\n")

    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/a%20b", "QUERY_STRING" => "c=d&e",
      "REQUEST_URI" => "/a%20b?c=d&e", "SERVER_NAME" => "example.org", "SERVER_PORT" => "81",
      "SERVER_PROTOCOL" => "HTTP/1.1", "REMOTE_ADDR" => "192.0.2.1", "HTTP_HOST" => "example.org:81",
      "HTTP_USER_AGENT" => "x", "HTTP_X_ONE_TWO" => "y", "rack.url_scheme" => "http", "rack.hijack?" => true,
      "rack.input" => Heddle::Rack::NoInput::INSTANCE }
      .each { |key, value| assert_equal value, env[key], key }
    refute env.key?("CONTENT_LENGTH")
    refute env.key?("rack.protocol")
  end

  def test_the_server_names_itself_where_the_client_does_not
    env = env_of("GET / HTTP/1.0\r\n\r\n")

    assert_equal ["198.51.100.1", "9292", "HTTP/1.0"], env.values_at("SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL")
    refute env.key?("HTTP_HOST")
    assert_equal "9292", env_of(GET)["SERVER_PORT"]
  end

  def test_content_headers_have_no_prefix
    env = env_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/x\r\n" \
                 "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx")

    assert_equal ["text/x", "1"], env.values_at("CONTENT_TYPE", "CONTENT_LENGTH")
    refute env.key?("HTTP_CONTENT_TYPE")
    refute env.key?("HTTP_CONTENT_LENGTH")
  end

  def test_repeated_headers_are_one_list
    env = env_of("GET / HTTP/1.1\r\nHost: a\r\nAccept: a\r\nX: 1\r\naccept: b\r\nCookie: c=1\r\n" \
                 "Cookie: d=2\r\nX: 2\r\n\r\n")

    assert_equal ["a, b", "c=1; d=2", "1, 2"], env.values_at("HTTP_ACCEPT", "HTTP_COOKIE", "HTTP_X")
  end

  def test_a_client_cannot_forge_a_header_with_an_underscore
    env = env_of("GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 1\r\nX-Forwarded_For: 2\r\n\r\n")

    refute env.key?("HTTP_X_FORWARDED_FOR")
    env = env_of("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX_A: 2\r\n\r\n", underscore_headers: true)

    assert_equal "1, 2", env["HTTP_X_A"]
  end

  # "httpoxy": libraries and programs take HTTP_PROXY for the proxy to send their own requests through.
  def test_a_client_cannot_choose_the_proxy_of_the_applications_own_requests
    %w[Proxy proxy PROXY].each do |name|
      env = env_of("GET / HTTP/1.1\r\nHost: a\r\n#{name}: http://evil/\r\nA: 1\r\n\r\n", underscore_headers: true)

      refute env.key?("HTTP_PROXY"), name
      assert_equal "1", env["HTTP_A"]
    end
    env = env_of("GET / HTTP/1.1\r\nHost: a\r\nProxy-Authorization: 1\r\nProxz: 2\r\nX-Proxy: 3\r\n\r\n")

    assert_equal %w[1 2 3], env.values_at("HTTP_PROXY_AUTHORIZATION", "HTTP_PROXZ", "HTTP_X_PROXY")
  end

  def test_a_header_cannot_reach_keys_without_the_prefix
    env = env_of("GET / HTTP/1.1\r\nHost: a\r\nRemote-Addr: 1\r\nServer-Name: x\r\nRack.Errors: y\r\n\r\n")

    assert_equal ["192.0.2.1", "a", "1"], env.values_at("REMOTE_ADDR", "SERVER_NAME", "HTTP_REMOTE_ADDR")
  end

  def test_an_absolute_target_wins_over_the_host_header
    env = env_of("GET http://b:8/c?d HTTP/1.1\r\nHost: a\r\n\r\n")

    assert_equal ["b:8", "b", "8", "/c", "d"],
                 env.values_at("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "PATH_INFO", "QUERY_STRING")
  end

  def test_special_targets
    assert_equal "*", env_of("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")["PATH_INFO"]
    assert_equal "b:443", env_of("CONNECT b:443 HTTP/1.1\r\nHost: a\r\n\r\n")["PATH_INFO"]
    assert_equal "[::1]", env_of("GET / HTTP/1.1\r\nHost: [::1]:9292\r\n\r\n")["SERVER_NAME"]
    assert_equal "198.51.100.1", env_of("GET / HTTP/1.0\r\nHost:\r\n\r\n")["SERVER_NAME"]
  end

  def test_bytes_beyond_ascii_are_binary
    value = env_of("GET / HTTP/1.1\r\nHost: a\r\nX: \xC3\xA4\r\n\r\n")["HTTP_X"]

    assert_equal ["ä".b, Encoding::BINARY], [value, value.encoding]
  end

  def test_an_upgrade_is_offered_as_protocols
    env = env_of("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket, x\r\nConnection: Upgrade\r\n\r\n")

    assert_equal %w[websocket x], env["rack.protocol"]
  end

  def test_each_request_has_an_env_of_its_own
    first = env_of(GET)
    first["rack.input"] = first["HTTP_X"] = "mine"

    refute_same first, env_of(GET)
    assert_same Heddle::Rack::NoInput::INSTANCE, env_of(GET)["rack.input"]
    refute_includes env_of(GET), "HTTP_X"
  end
end
