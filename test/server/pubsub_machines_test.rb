# frozen_string_literal: true

require "test_helper"
require "concurrency/support/private_server"
require "socket"
require "support/served_process"
require "tmpdir"
require "support/free_port"

# Two servers, as on two machines, share topics through a Redis: each has a master that reads for its workers.
class PubSubMachinesTest < Minitest::Test
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/events" then Heddle::EventStream.response("room", since: env["HTTP_LAST_EVENT_ID"])
      when "/publish" then [200, {}, [Heddle::PubSub.publish("room", env["QUERY_STRING"])]]
      when "/position" then [200, {}, [Heddle::PubSub.position("room")]]
      else [200, {}, [Process.pid.to_s]]
      end
    }
  RUBY

  # What an EventSource does.
  class Events
    def initialize(uri, since)
      @socket = TCPSocket.new(uri.host, uri.port)
      @socket.write("GET /events HTTP/1.1\r\nhost: #{uri.host}\r\nlast-event-id: #{since}\r\n\r\n")
    end

    # @return [Array(String, String)] data and position of the next event
    def take
      id = nil
      while (line = @socket.wait_readable(60) && @socket.gets)
        id = line[/\Aid: (.*)/, 1] || id
        return [line[/\Adata: (.*)/, 1], id] if line.start_with?("data: ")
      end
      raise "the stream ended"
    end

    def close = @socket.close
  end

  def setup
    program = need_program("redis-server")
    skip "needs the gem redis-client: bin/setup" if Gem::Specification.find_all_by_name("redis-client").empty?
    @redis = PrivateServer.new("redis.sock") do |folder|
      [program, "--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--unixsocket",
       File.join(folder, "redis.sock")]
    end
    @folder = Dir.mktmpdir("heddle-machines")
    File.write(File.join(@folder, "config.ru"), APP)
    @servers = Array.new(2) { |i| serve(i) }
  end

  def teardown
    @servers&.each(&:stop)
    @redis&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  def port = @port ||= FreePort.find

  def serve(number)
    FileUtils.mkdir_p(File.join(@folder, number.to_s))
    command = [*ServedProcess::HEDDLE, "serve", File.join(@folder, "config.ru"), "-w", "2", "-p", "0", "--pubsub",
               "redis://127.0.0.1:#{port}", "--no-access-log"]
    ServedProcess.new(command, folder: File.join(@folder, number.to_s))
  end

  def test_masters_share_a_topic_and_outlive_their_workers
    first, second = @servers
    position = first.get("/position").body
    events = @servers.map { |server| Events.new(server.uri, position) }
    published = [[first, "a"], [second, "b"]].map { |server, data| [data, server.get("/publish?#{data}").body] }

    assert_equal [published], events.map { |one| Array.new(2) { one.take } }.uniq
    events.each(&:close)

    # Clients continue at their position on the other machine, with any worker that is left.
    Process.kill(:KILL, Integer(second.get("/").body))
    published << ["c", first.get("/publish?c").body]
    stream = Events.new(second.uri, published.first.last)

    assert_equal published.drop(1), Array.new(2) { stream.take }
    published << ["d", second.get("/publish?d").body]
    assert_equal published.last, stream.take
    stream.close
  end
end
