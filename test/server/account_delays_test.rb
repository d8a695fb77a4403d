# frozen_string_literal: true

# test: each version

require "test_helper"
require "json"
require "net/support/name_server"
require "offload/support/native_calls"
require "redis-client"
require "tempfile"
require "server/server_helpers"

# A delay of each kind is found in its own part of the time account, whatever else the machine does meanwhile: the
# account is compared with the clock, around the delay.
class AccountDelaysTest < Minitest::Test
  include ServerHelpers

  DELAY = 0.05
  # By which a part may differ from the delay, seconds.
  TOLERANCE = 0.005
  # A busy machine adds to these; files are loaded, and sockets closed, on offload threads.
  ALWAYS = %i[running ready preempted gc offloaded].freeze
  # What a request has spent between two readings of its account. `least` and `most`: seconds on the clock, without and
  # with both readings.
  Spent = Data.define(:parts, :tasks, :least, :most)

  # One server for all tests, which runs a block in each request.
  class Requests
    include ServerHelpers

    def self.shared = @shared ||= new.tap { |requests| Minitest.after_run { requests.stop } }

    def initialize
      start(lambda { |_env|
        @block.call
        [200, {}, ["a"]]
      }, lint: false)
    end

    # @return [String] the status of a request that runs the block
    def run(&block)
      @block = block
      get("/").code
    end

    # From the helpers of tests.
    def selector_under_test = nil
    def mode_under_test = {}
  end

  # @return [Spent] of the block in a request, which may itself call {#measure}
  def spent(&delay)
    found = nil
    requests = Requests.shared
    status = requests.run { found = in_request(&delay) }

    assert_equal "200", status, requests.errors.string
    found
  end

  def in_request(&delay)
    result = nil
    found = measure { result = delay.call }
    result.is_a?(Spent) ? result : found
  end

  def measure
    before_reading = now
    before = Heddle.current_request.account
    began = now
    yield
    ended = now
    after = Heddle.current_request.account
    Spent.new(parts: difference(before, after), tasks: difference(before[:tasks], after[:tasks]), least: ended - began,
              most: now - before_reading)
  end

  def difference(before, after)
    (Heddle::Account::PARTS & after.keys).to_h { |part| [part, after[part] - before.fetch(part, 0)] }
                                         .reject { |_, seconds| seconds.abs < 1e-6 }
  end

  # The delay is in the part, nothing is in any other, and their sum is the time on the clock. When another
  # process delays the request after a time limit has begun and before the wait begins, the part has less of it.
  def assert_delay(part, spent, delay: DELAY)
    found = spent.parts
    sum = found.values.sum

    assert_operator found.fetch(part, 0), :>=, delay / 2, spent.inspect
    assert_operator found.fetch(part, 0), :<=, [delay + TOLERANCE, spent.most].max, spent.inspect
    assert_empty found.keys - [part] - ALWAYS, spent.inspect
    assert_operator sum, :>=, spent.least - 1e-5, spent.inspect
    assert_operator sum, :<=, spent.most + 1e-5, spent.inspect
    assert_operator found.values.min, :>=, 0, spent.inspect
  end

  # Runs the block after the delay, in a thread that is no part of the server.
  def later(&)
    Thread.new do
      sleep DELAY
      yield
    end
  end

  def offloading
    was_on = Heddle.enabled.include?(:offload)
    Heddle.enable(:offload, allow: ["native_calls"])
    require NativeCallsLibrary.path
    NativeCalls.reset
    yield
  ensure
    Heddle.disable(:offload) unless was_on
  end

  # Holds the loop and Ruby's lock: nothing else runs in Ruby.
  def hold_loop(seconds)
    require NativeCallsLibrary.path
    NativeCalls.hold(seconds)
  end

  def test_sleep_is_a_part
    assert_delay :sleep, spent { sleep DELAY }
  end

  def test_mutex_of_another_thread_is_a_lock
    mutex = Thread::Mutex.new
    locked, waits = Array.new(2) { Thread::Queue.new }
    assert_delay(:lock, spent do
      thread = Thread.new do
        mutex.synchronize do
          locked << true
          waits.pop # returns when the request gives Ruby's lock away, which is where it waits for the mutex
          sleep DELAY
        end
      end
      locked.pop
      waits << true
      mutex.synchronize { nil }
      thread.join
    end)
  end

  def test_mutex_of_another_task_is_a_lock_and_the_task_counts_beside
    mutex = Thread::Mutex.new
    found = spent do
      locked, waits = Array.new(2) { Heddle::Promise.new }
      Heddle.async { mutex.synchronize { locked.resolve && waits.value && sleep(DELAY) } }
      locked.value
      waits.resolve(true) # the task continues when this fiber waits
      mutex.synchronize { nil }
    end

    assert_delay :lock, found
    assert_operator found.tasks[:sleep], :>=, DELAY / 2
    assert_empty found.tasks.keys - %i[sleep lock] - ALWAYS
  end

  def test_empty_queue_is_a_lock
    queue = Thread::Queue.new
    assert_delay(:lock, spent do
      later { queue << true }
      queue.pop
    end)
  end

  def test_full_queue_is_a_lock
    queue = Thread::SizedQueue.new(1)
    queue << 1
    assert_delay(:lock, spent do
      later { queue.pop }
      queue << 2
    end)
  end

  def test_queue_with_a_timeout_is_a_lock
    assert_delay :lock, spent { Thread::Queue.new.pop(timeout: DELAY) }
  end

  def test_condition_variable_is_a_lock
    mutex = Thread::Mutex.new
    changed = Thread::ConditionVariable.new
    assert_delay(:lock, spent do
      mutex.synchronize do
        later { mutex.synchronize { changed.signal } }
        changed.wait(mutex)
      end
    end)
  end

  def test_thread_that_is_joined_is_a_lock
    assert_delay :lock, spent { later { nil }.join }
  end

  def test_pool_without_a_free_resource_is_a_checkout
    pool = Heddle::Pool.new(max: 1) { Object.new }
    taken, waits = Array.new(2) { Heddle::Promise.new }
    assert_delay(:checkout, spent do
      Heddle.async { pool.with { taken.resolve && waits.value && sleep(DELAY) } }
      taken.value
      measure { waits.resolve(true) && pool.with { nil } }
    end)
  end

  def test_child_process_by_system_is_a_process
    assert_delay :process, spent { system("sleep", DELAY.to_s) }
  end

  def test_pipe_is_io
    reader, writer = IO.pipe
    assert_delay(:io, spent do
      later { writer << "a" }
      reader.readpartial(1)
    end)
  end

  def test_socket_is_io
    one, other = UNIXSocket.pair
    assert_delay(:io, spent do
      later { other << "a" }
      one.wait_readable
    end)
  end

  def test_server_of_net_http_is_http
    late = upstream { |client| client.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n") }
    url = URI("http://127.0.0.1:#{late}/")

    assert_delay :http, spent { Net::HTTP.get(url) }
  end

  def test_server_of_heddles_client_is_http
    late = upstream { |client| client.write("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n") }
    found = spent { Heddle::HTTP::Client.new.get("http://127.0.0.1:#{late}/") }

    assert_delay :http, found
  end

  def test_redis_is_redis
    late = upstream { |client| client.write("+PONG\r\n") }
    client = RedisClient.config(host: "127.0.0.1", port: late, protocol: 2, timeout: PATIENCE).new_client

    assert_delay :redis, spent { client.call("PING") }
  end

  def test_name_server_is_dns
    Heddle::TestHelpers::NameServer.open do |server|
      server.host("web.example", "192.0.2.1")
      server.delay = DELAY
      resolver = Heddle::Net::Resolver.new(nameservers: [server.address], hosts: File::NULL, no_aaaa: true)

      assert_delay :dns, spent { resolver.addresses("web.example") }
    end
  end

  def test_what_an_adapter_names_is_a_query
    reader, writer = IO.pipe
    assert_delay(:query, spent do
      later { writer << "a" }
      Heddle::Account.wait_for(Heddle::Account::QUERY) { reader.readpartial(1) }
    end)
  end

  def test_lock_in_a_query_is_a_lock
    assert_delay :lock, spent { Heddle::Account.wait_for(Heddle::Account::QUERY) { Thread::Queue.new.pop(timeout: DELAY) } }
  end

  def test_locked_file_is_a_file
    offloading do
      Tempfile.create do |file|
        assert_delay(:file, spent do
          other = File.open(file.path)
          other.flock(File::LOCK_EX)
          later { other.close }
          file.flock(File::LOCK_EX)
        end)
      end
    end
  end

  def test_offloaded_call_is_offloaded_and_its_library_is_named
    libraries = nil
    found = offloading do
      spent do
        NativeCalls.sleep_for(DELAY)
        libraries = Heddle.current_request.account[:libraries]
      end
    end

    assert_delay :offloaded, found
    name, seconds = libraries.first

    assert_match(/native_calls/, name)
    assert_operator seconds, :>=, DELAY - TOLERANCE
    assert_operator seconds, :<=, found.most
  end

  def test_computing_alone_is_running
    found = spent { hold_loop(DELAY) }

    assert_delay :running, found
  end

  # The other fiber wakes the request, and computes before it can run.
  def test_fiber_that_waits_for_its_turn_is_ready
    promise = Heddle::Promise.new
    found = spent do
      task = Heddle.async do
        promise.resolve(true)
        hold_loop(DELAY)
      end
      promise.value
      task.value
    end

    assert_operator found.parts[:ready], :>=, DELAY - TOLERANCE, found.inspect
    assert_operator found.tasks[:running] + found.tasks.fetch(:gc, 0), :>=, DELAY - TOLERANCE
    assert_operator found.parts.values.sum, :<=, found.most + 1e-5
  end

  # While the request has given way, the task computes.
  def test_fiber_that_has_used_up_its_time_slice_is_preempted
    was_on = Heddle.enabled.include?(:preempt)
    Heddle.enable(:preempt, slice: 0.002)
    found = spent do
      done = false
      task = Heddle.async do
        5.times do
          hold_loop(DELAY / 5)
          Fiber.scheduler.yield
        end
        done = true
      end
      deadline = now + PATIENCE
      nil until done || now > deadline
      task.value
    end

    ran = found.tasks.values_at(:running, :gc).compact.sum

    assert_operator ran, :>=, DELAY - TOLERANCE
    assert_operator found.parts[:preempted], :>=, ran - TOLERANCE, found.inspect
    assert_operator found.parts.values.sum, :<=, found.most + 1e-5
  ensure
    Heddle.disable(:preempt) unless was_on
  end

  def test_garbage_collection_is_a_part
    collected = nil
    found = spent do
      before = GC.total_time
      GC.start until (collected = (GC.total_time - before) / 1e9) >= DELAY
    end

    assert_delay :gc, found, delay: collected
  end

  private

  # @return [Integer] the port of a server that answers one request after the delay
  def upstream
    server = TCPServer.new("127.0.0.1", 0)
    Thread.new do
      client = server.accept
      client.readpartial(10_000)
      sleep DELAY
      yield client
      client.close_write
      client.read
    ensure
      client&.close
      server.close
    end
    server.addr[1]
  end
end
