# frozen_string_literal: true

require "test_helper"
require "server/server_helpers"
require "server/cluster/cluster_case"
require "support/h2_exchanges"
require "open3"

# HTTP/2 in each mode, and while workers are replaced; in Ractors: modes/ractors_test.rb.
class Http2ModesTest < Minitest::Test
  include ServerHelpers
  include H2Exchanges

  APP = ->(env) { [200, { "content-type" => "text/plain" }, [env["SERVER_PROTOCOL"], env["rack.input"].read.to_s]] }
  COUNT = 20

  def expected
    Array.new(COUNT) { |i| [(2 * i) + 1, "HTTP/2#{"body #{(2 * i) + 1}" if i.odd?}"] }.to_h
  end

  [{ mode: :fiber }, { mode: :fiber, threads: 2 }, { mode: :thread, threads: 3 }, { mode: :single }].each do |options|
    define_method("test_#{options.values.join("_")}") do
      serving(APP, lint: false, **options) { assert_equal expected, exchange_together(connect, COUNT) }
    end
  end
end

# Workers are replaced while clients of HTTP/2 ask all the time: no request is lost.
class Http2ReloadTest < Minitest::Test
  include Heddle::TestHelpers
  include ClusterCase

  # HEDDLE_RELOADS=20 is what the acceptance asks for; three take a few seconds.
  RELOADS = Integer(ENV.fetch("HEDDLE_RELOADS", "3"))

  # Seconds between two times ten requests: the workers that start need the processors, too.
  PAUSE = 0.005

  # Requests on one connection, ten at a time, until the server's GOAWAY or the test's end.
  class Conversation
    def initialize(client)
      @client = client
      @id = -1
      @open = []
      @last = nil
    end

    # @yieldreturn [Boolean] whether it is to end
    # @return [Boolean] whether every request was answered that was not refused with GOAWAY
    def answered?
      until @last && @open.empty?
        ask if @open.empty? && !@last
        frame = @client.read_frame or return @open.none? { |stream| @last.nil? || stream <= @last }
        return false if frame.type == "RST_STREAM"

        note(frame)
        @last ||= @id if yield && @open.empty?
      end
      true
    end

    private

    def ask
      sleep PAUSE
      10.times { @client.send_frame("HEADERS es+eh #{@open << (@id += 2) && @id} get") }
    end

    def note(frame)
      @open.delete(frame.stream) if frame.end_stream?
      return unless frame.type == "GOAWAY"

      @last = frame.payload.unpack1("N")
      @open.reject! { |stream| stream > @last }
    end
  end
  private_constant :Conversation

  def test_no_request_is_lost_while_workers_are_replaced
    write("config.ru", 'run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] }')
    serve
    over = false
    clients = Array.new(2) { Thread.new { ask_until { over } } }
    reload_often
    over = true

    assert_equal [true, true], clients.map(&:value)
  end

  # h2load opens no other connection after GOAWAY, so it runs again and again. It counts as failed what it was about to
  # send when GOAWAY came. RFC 9113, section 6.8, lets no request fail that the server has got.
  def test_h2load_loses_no_request_while_workers_are_replaced
    skip "h2load is not installed" unless system("command -v h2load > /dev/null")
    write("config.ru", <<~RUBY)
      received = File.open("received", "a")
      run lambda { |_env|
        received.syswrite("x")
        [200, { "content-type" => "text/plain" }, ["hello"]]
      }
    RUBY
    serve
    over = false
    load = Thread.new { [].tap { |runs| runs << h2load until over } }
    reload_often
    over = true

    started, succeeded, failed = %w[started succeeded failed].map { |name| load.value.sum { |run| run.fetch(name) } }
    received = File.size(path("received"))

    assert_operator succeeded, :>, 0
    assert_operator received + failed, :<=, started, "requests that the server has got have failed"
    assert_operator received, :>=, succeeded
  end

  # @return [Hash{String => Integer}] requests of one second, by their ends
  def h2load
    output, = Open3.capture2e("h2load", "-c20", "-m10", "-D1", "--rps=50", served.uri.to_s)
    output[/^requests: .*/].scan(/(\d+) (\w+)/).to_h { |count, name| [name, Integer(count)] }
  end

  def reload_often
    RELOADS.times do |i|
      signal("HUP")
      wait_until("no reload #{i + 1}:\n#{served.output}") { served.output.scan("reloaded").size == i + 1 }
    end
  end

  # Ten requests at a time; those that GOAWAY says were not looked at count for nothing.
  def ask_until(&over)
    until yield
      client = H2Client.new(TCPSocket.new(served.uri.host, served.uri.port))
      client.send_preface
      client.send_frame("WINDOW_UPDATE - 0 #1000000000")
      return false unless Conversation.new(client).answered?(&over)

      client.close
    end
    true
  end
end
