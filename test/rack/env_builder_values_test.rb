# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/http"
require "heddle/rack"
require "rack/lint"
require_relative "support/env_builders"

# The env's keys and values as objects: which are shared, which are the application's own, and what the garbage
# collector may free.
class EnvBuilderValuesTest < Minitest::Test
  include Heddle

  Connection = Struct.new(:remote_address, :local_address, :local_port)
  HELLO = "GET / HTTP/1.1\r\nHost: 127.0.0.1:9292\r\n\r\n"

  def setup
    @builder = EnvBuilders::EnvBuilder.new($stderr, nil)
    @connection = Connection.new("192.0.2.1", "198.51.100.1", 9_292)
  end

  def parse(text, **limits)
    head = HTTP::H1::HeadParser.new(HTTP::Limits.new(**limits)).parse(text.b)

    assert_kind_of HTTP::H1::RequestHead, head, head.inspect
    head
  end

  def build(text, connection = @connection, builder: @builder, **limits)
    builder.build(parse(text, **limits), connection)
  end

  def request(*lines, line: "GET / HTTP/1.1") = "#{[line, "Host: a", *lines].join("\r\n")}\r\n\r\n"

  # The same by the rules, without any haste.
  def by_the_rules(head, connection)
    env = { "SCRIPT_NAME" => "", "rack.url_scheme" => "http", "rack.errors" => $stderr, "rack.hijack?" => true,
            "rack.input" => Rack::NoInput::INSTANCE,
            "REQUEST_METHOD" => head.method, "PATH_INFO" => head.path, "QUERY_STRING" => head.query,
            "REQUEST_URI" => head.target, "SERVER_PROTOCOL" => "HTTP/1.#{head.minor}",
            "REMOTE_ADDR" => connection.remote_address, "SERVER_NAME" => connection.local_address,
            "SERVER_PORT" => connection.local_port.to_s }
    head.fields.each_slice(2) { |name, value| add(env, name, value) }
    env["HTTP_HOST"] = head.authority if head.host
    env["SERVER_NAME"] = head.host unless head.host.to_s.empty?
    env["SERVER_PORT"] = head.port unless head.port.to_s.empty?
    env["rack.protocol"] = head.upgrade if head.upgrade
    env
  end

  def add(env, name, value)
    key = "HTTP_#{name.upcase.tr("-", "_")}"
    key = key.delete_prefix("HTTP_") if %w[content-type content-length].include?(name)
    return env[key] = value if !env.key?(key) || key == "CONTENT_LENGTH"

    env[key] = "#{env[key]}#{key == "HTTP_COOKIE" ? "; " : ", "}#{value}"
  end

  NAMES = %w[Accept ACCEPT Accept-Encoding Connection Cookie cookie Content-Type User-Agent User_Agent X-A X_A x-a
             X-Forwarded-For X_Forwarded-For Upgrade TE Sec-Fetch-Mode Priority a !#$%&'*+.^`|~].freeze
  VALUES = ["", "a", "b, c", "keep-alive", "close", "Upgrade, x", "\xFF\xE4".b, "v" * 300, "gzip, deflate, br"].freeze
  TARGETS = ["/", "/a", "/?", "/a?b=c&d", "http://b", "http://b:81/?x", "/%20;a?b?c"].freeze
  HOSTS = ["a", "a:1", "a:", "[::1]", "[::1]:9", "example.org", "b" * 200].freeze

  def random_request(random)
    lines = Array.new(random.rand(12)) { "#{NAMES.sample(random:)}: #{VALUES.sample(random:)}" }
    minor = random.rand(4).zero? ? 0 : 1
    with_host = minor == 1 || random.rand(2).zero?
    hosts = minor == 1 ? HOSTS : [*HOSTS, ""] # which HTTP/1.1 refuses
    lines.insert(random.rand(lines.size + 1), "Host: #{hosts.sample(random:)}") if with_host
    method = %w[GET GET HEAD POST PATCH BREW get].sample(random:)
    "#{method} #{TARGETS.sample(random:)} HTTP/1.#{minor}\r\n#{lines.map { |line| "#{line}\r\n" }.join}\r\n"
  end

  def random_connection(random)
    Connection.new(["127.0.0.1", "192.0.2.#{random.rand(200)}", "2001:db8::#{random.rand(1..9)}"].sample(random:),
                   ["198.51.100.1", "127.0.0.1"].sample(random:), [80, 9_292].sample(random:))
  end

  def assert_same_as_by_the_rules(text, connection, builder = @builder)
    head = parse(text, underscore_headers: true)
    expected = by_the_rules(head, connection)
    2.times do
      env = builder.build(head, connection)

      assert_equal expected, env, text
      refute_predicate env, :frozen?
    end
  end

  def test_random_requests_give_what_the_rules_say
    random = Random.new(4)
    2_000.times { assert_same_as_by_the_rules(random_request(random), random_connection(random)) }
  end

  def test_random_requests_under_gc_stress
    random = Random.new(5)
    texts = Array.new(12) { random_request(random) }
    heads = texts.map { |text| parse(text, underscore_headers: true) }
    connections = texts.map { random_connection(random) }
    expected = heads.zip(connections).map { |head, connection| by_the_rules(head, connection) }
    builder = EnvBuilders::EnvBuilder.new($stderr, nil)
    GC.stress = true
    envs = heads.zip(connections).map { |head, connection| builder.build(head, connection) }
    GC.stress = false

    assert_equal expected, envs
  ensure
    GC.stress = false
  end

  def test_cached_values_survive_compaction
    random = Random.new(6)
    requests = Array.new(100) { [random_request(random), random_connection(random)] }
    3.times do
      requests.each { |text, connection| assert_same_as_by_the_rules(text, connection) }
      GC.compact
    end
  end

  # A write barrier that is missing shows when young objects hang on an old one.
  def test_cached_values_of_an_old_builder_survive_minor_collections
    4.times { GC.start }
    500.times do |number|
      text = "GET / HTTP/1.1\r\nHost: host-#{number}\r\nTE: #{number}\r\n\r\n"
      2.times do
        assert_equal ["host-#{number}", number.to_s], build(text).values_at("SERVER_NAME", "HTTP_TE")
        GC.start(full_mark: false) if (number % 25).zero?
      end
    end
  end

  # Objects of a request, the Hash among them. A path is the application's own.
  def test_a_plain_request_takes_two_objects
    assert_operator allocations(HELLO), :<=, 2
    assert_operator allocations("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:9292\r\n\r\n"), :<=, 4
    # A header that the client repeats takes none, another one its value.
    assert_operator allocations(request("Connection: keep-alive", "Accept-Encoding: gzip, br")), :<=, 2
    assert_operator allocations(request("User-Agent: x", "X-Something-New: y")), :<=, 4
  end

  def allocations(text)
    head = parse(text)
    @connection.remote_address = "127.0.0.1"
    5.times { @builder.build(head, @connection) }
    least = Array.new(5) do
      before = GC.stat(:total_allocated_objects)
      @builder.build(head, @connection)
      GC.stat(:total_allocated_objects) - before
    end.min
    puts "#{least} objects: #{text.lines.first.chomp}, #{head.fields.size / 2} headers" if $VERBOSE
    least
  end

  def test_keys_are_frozen_and_one_object_for_all
    text = request("Accept: a", "X-Rare: b", "#{"x" * 300}: c")
    first, second = Array.new(2) { build(text, builder: EnvBuilders::EnvBuilder.new(nil, nil)) }

    first.keys.zip(second.keys) do |one, other|
      assert_predicate one, :frozen?
      assert_same one, other
      assert_equal Encoding::UTF_8, one.encoding
    end
  end

  # Applications call force_encoding and << on these.
  def test_changes_by_an_application_do_not_affect_later_requests
    text = request("User-Agent: a", "Accept: b", "Cookie: c", "Content-Type: d", "X-A: e", "X-Forwarded-For: f",
                   line: "GET /a?b HTTP/1.1")
    %w[PATH_INFO QUERY_STRING REQUEST_URI HTTP_USER_AGENT HTTP_ACCEPT HTTP_COOKIE CONTENT_TYPE HTTP_X_A
       HTTP_X_FORWARDED_FOR].each do |key|
      before = build(text)[key].dup
      build(text)[key] << "changed"

      assert_equal before, build(text)[key], key
      assert_equal Encoding::BINARY, before.encoding, key
    end
    build(HELLO)["PATH_INFO"] << "x"

    assert_equal "/", build(HELLO)["PATH_INFO"]
  end

  def test_a_joined_list_leaves_the_remembered_value_alone
    assert_equal "gzip, br", build(request("Accept-Encoding: gzip", "Accept-Encoding: br"))["HTTP_ACCEPT_ENCODING"]
    assert_equal "gzip", build(request("Accept-Encoding: gzip"))["HTTP_ACCEPT_ENCODING"]
  end

  def test_values_set_by_a_request_are_invisible_to_others
    build(HELLO).merge!("HTTP_HOST" => "x", "SERVER_NAME" => "y", "rack.input" => 1, "x" => 2)

    assert_equal by_the_rules(parse(HELLO), @connection), build(HELLO)
  end

  def test_addresses
    { "127.0.0.1" => "127.0.0.1", "::1" => "::1", "::ffff:192.0.2.7" => "192.0.2.7", "unix" => "127.0.0.1" }
      .each do |address, text|
        assert_equal text, build(HELLO, Connection.new(address, "::1", 1))["REMOTE_ADDR"]
      end
    { ["::1", 81] => ["[::1]", "81"], ["192.0.2.1", 80] => %w[192.0.2.1 80], ["unix", nil] => %w[localhost 80] }
      .each do |(address, port), expected|
        env = build("GET / HTTP/1.0\r\n\r\n", Connection.new("::2", address, port))

        assert_equal expected, env.values_at("SERVER_NAME", "SERVER_PORT")
      end
  end

  def test_a_builder_that_was_never_made_says_so
    assert_raises(ArgumentError) { EnvBuilders::EnvBuilder.allocate.build(parse(HELLO), @connection) }
    assert_raises(ArgumentError) { EnvBuilders::EnvBuilder.new }
  end
end
