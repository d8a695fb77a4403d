# frozen_string_literal: true

require_relative "../concurrency/support/loop_helpers"
require_relative "../concurrency/support/private_server"
require "async"
require "async/http"
require "async/redis"
require "async/websocket/adapters/http"
require "async/websocket/client"
require "graphql"
require "graphql/dataloader/async_dataloader"
require "support/free_port"

# Libraries that are built on async, in Heddle.run.
class AsyncGemsTest < Minitest::Test
  include Heddle::LoopHelpers

  # Loads keys when all sources that can have asked for theirs.
  class Source < GraphQL::Dataloader::Source
    @waiting = []
    class << self
      attr_reader :waiting
    end

    def initialize(name)
      super()
      @name = name
    end

    def fetch(keys)
      Source.waiting << @name
      Fiber.scheduler.yield until Source.waiting.size == 2
      keys.map { |key| "#{@name} #{key}" }
    end
  end

  # Two fields, each from a source of its own.
  class Query < GraphQL::Schema::Object
    field :first, String
    field :second, String

    def first = dataloader.with(Source, "a").load(1)
    def second = dataloader.with(Source, "b").load(2)
  end

  # With the dataloader that runs sources in tasks of async's.
  class Schema < GraphQL::Schema
    query Query
    use GraphQL::Dataloader::AsyncDataloader
  end

  def test_graphqls_dataloader_runs_its_sources_at_the_same_time
    assert_equal({ "data" => { "first" => "a 1", "second" => "b 2" } },
                 in_loop { Schema.execute("{ first second }").to_h })
  end

  # It runs the scheduler, which runs already.
  def test_graphqls_own_nonblocking_dataloader_is_refused
    schema = Class.new(GraphQL::Schema) { query Query }
    capture_io { schema.use(GraphQL::Dataloader, nonblocking: true) } # it warns that it is deprecated

    assert_raises(ThreadError) { in_loop { schema.execute("{ first }") } }
  end

  def test_async_redis_answers_each_of_many_tasks
    program = need_program("redis-server")
    server = PrivateServer.new("redis.sock") do |folder|
      [program, "--port", "0", "--unixsocket", File.join(folder, "redis.sock"), "--save", "", "--appendonly", "no"]
    end
    values = in_loop do
      redis = Async::Redis::Client.new(Async::Redis::Endpoint.unix(File.join(server.folder, "redis.sock")))
      Array.new(100) { |number| Async { redis.call("ECHO", number.to_s) } }.map(&:wait)
    ensure
      redis&.close
    end

    assert_equal Array.new(100, &:to_s), values
  ensure
    server&.stop
  end

  def test_a_websocket_of_async_talks_in_both_directions
    shout = Protocol::HTTP::Middleware.for do |request|
      Async::WebSocket::Adapters::HTTP.open(request) do |connection|
        while (message = connection.read)
          connection.write(message.buffer.upcase)
          connection.flush
        end
      end
    end
    answers = in_loop { over(shout) { |connection| %w[warp weft].map { |word| ask(connection, word) } } }

    assert_equal %w[WARP WEFT], answers
  end

  private

  def over(app, &)
    port = FreePort.find
    endpoint = Async::HTTP::Endpoint.parse("http://127.0.0.1:#{port}")
    bound = endpoint.bound
    server = Async { Async::HTTP::Server.new(app, bound, protocol: endpoint.protocol, scheme: "http").run }
    Async::WebSocket::Client.connect(endpoint, &)
  ensure
    server&.stop
    bound&.close
  end

  def ask(connection, word)
    connection.write(word)
    connection.flush
    connection.read.buffer
  end
end
