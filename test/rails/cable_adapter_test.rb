# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle"
require "concurrency/support/private_server"
require "socket"
require "support/free_port"

# `adapter: heddle` of Action Cable, in processes of any server.
class CableAdapterTest < Minitest::Test
  PATIENCE = 60

  def setup
    skip "needs the gem actioncable: bin/setup" if Gem::Specification.find_all_by_name("actioncable").empty?
    require "active_support"
    require "active_support/core_ext/hash/indifferent_access"
    require "active_support/core_ext/string/inflections"
    require "action_cable"
  end

  def teardown
    @adapters&.each(&:shutdown)
    @redis&.stop
    Heddle::PubSub::Route.backend = nil
  end

  # Action Cable finds the adapter by its name.
  def adapter(**cable)
    configuration = ActionCable::Server::Configuration.new
    configuration.cable = { "adapter" => "heddle", **cable }.with_indifferent_access
    configuration.logger = Logger.new(@log = StringIO.new)
    server = ActionCable::Server::Base.new(config: configuration)
    server.pubsub.tap { |one| (@adapters ||= []) << one }
  end

  # What the channel's subscriber is given, from now on.
  def subscribe(adapter, channel, callback = nil)
    ready = Thread::Queue.new
    messages = Thread::Queue.new
    callback ||= ->(message) { messages << message }
    adapter.subscribe(channel, callback, -> { ready << true })
    assert ready.pop(timeout: PATIENCE), "no success callback"
    messages
  end

  def pop(messages) = messages.pop(timeout: PATIENCE)

  def need_redis
    program = need_program("redis-server")
    skip "needs the gem redis-client: bin/setup" if Gem::Specification.find_all_by_name("redis-client").empty?
    port = FreePort.find
    @redis = PrivateServer.new("redis.sock") do |folder|
      [program, "--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--unixsocket",
       File.join(folder, "redis.sock")]
    end
    "redis://127.0.0.1:#{port}"
  end

  def test_broadcasts_come_in_order_as_utf8
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    one = adapter
    first, second = Array.new(2) { subscribe(one, "room") }
    texts = Array.new(200) { |i| "ä #{i}" }
    texts.each { |text| one.broadcast("room", text) }

    assert_equal [texts], [first, second].map { |messages| texts.map { pop(messages) } }.uniq
  end

  def test_prefixes_keep_applications_apart
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    mine, other = %w[mine other].map { |channel_prefix| adapter(channel_prefix:) }
    messages = subscribe(mine, "room")
    other.broadcast("room", "theirs")
    mine.broadcast("room", "ours")

    assert_equal "ours", pop(messages)
  end

  def test_a_failing_subscriber_does_not_keep_others_from_their_messages
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    one = adapter
    subscribe(one, "room", ->(_message) { raise "broken" })
    subscribe(one, "room", ->(_message) { raise NotImplementedError, "not yet" })
    messages = subscribe(one, "room")
    one.broadcast("room", "x")

    assert_equal "x", pop(messages)
    assert_includes @log.string, "a subscriber of Action Cable failed: broken"
    assert_includes @log.string, "a subscriber of Action Cable failed: not yet (NotImplementedError)"
  end

  # Its name may be a client's parameter.
  def test_a_channel_that_cannot_be_subscribed_does_not_keep_others_from_their_messages
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    one = adapter
    before = subscribe(one, "before")
    one.subscribe("x" * 1_025, ->(_message) {}, -> {})
    after = subscribe(one, "after")
    %w[before after].each { |channel| one.broadcast(channel, channel) }

    assert_equal %w[before after], [before, after].map { |messages| pop(messages) }
    assert_match(/the channel "x+" can't be subscribed: .* 1025 bytes, .* 1024 \(ArgumentError\)/, @log.string)
  end

  def test_an_unsubscribed_callback_gets_no_message
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    one = adapter
    got = []
    callback = ->(message) { got << message }
    subscribe(one, "room", callback)
    one.unsubscribe("room", callback)
    messages = subscribe(one, "room")
    one.broadcast("room", "x")

    assert_equal "x", pop(messages)
    assert_empty got
  end

  # A process of a server that is not Heddle's. It broadcasts the text, or says what its subscriber is given.
  ELSEWHERE = <<~RUBY
    require "active_support"
    require "active_support/core_ext/hash/indifferent_access"
    require "active_support/core_ext/string/inflections"
    require "action_cable"
    url, text = ARGV
    configuration = ActionCable::Server::Configuration.new
    configuration.cable = { "adapter" => "heddle", "url" => url }.with_indifferent_access
    configuration.logger = Logger.new(File::NULL)
    adapter = ActionCable::Server::Base.new(config: configuration).pubsub
    $stdout.sync = true
    $stderr = $stdout
    if text
      adapter.broadcast("room", text)
    else
      messages = Thread::Queue.new
      adapter.subscribe("room", ->(message) { messages << message }, -> { $stdout.puts("ready") })
      puts messages.pop
    end
  RUBY

  def elsewhere(*arguments, &)
    folder = File.expand_path("../..", __dir__)
    IO.popen([RbConfig.ruby, "-r./bin/support/gem_paths", "-Ilib", "-e", ELSEWHERE, *arguments], chdir: folder, &)
  end

  def read_line(io)
    io.wait_readable(PATIENCE) && io.gets&.chomp
  end

  # As under Puma: nothing in common but the Redis.
  def test_processes_of_another_server_share_broadcasts_through_a_redis
    url = need_redis
    elsewhere(url) do |subscriber|
      assert_equal "ready", read_line(subscriber)
      elsewhere(url, "from here", &:read)

      assert_equal "from here", read_line(subscriber)
    end
  end

  def test_without_a_url_a_process_of_another_server_refuses_subscribers
    output = elsewhere("", &:read)

    assert_match(/a server other than Heddle, the adapter .* a url.*\(Heddle::PubSub::UnreachableError\)/m, output)
    refute_includes output, "ready"
  end

  def test_a_url_that_the_server_does_not_use_is_refused
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    wrong = assert_raises(ArgumentError) { adapter(url: "redis://elsewhere") }
    assert_includes wrong.message, "config/heddle.rb"
  end
end
