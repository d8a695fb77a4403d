# frozen_string_literal: true

# test: each version

require "net/support/resolver_case"
require "heddle/scheduler"
require "net/http"
require "open3"
require "timeout"

# Ruby's own socket calls resolve names through the scheduler, and only the asker waits.
class ResolverSchedulerTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  def setup
    super
    @server = name_server
  end

  def test_many_lookups_wait_together
    20.times { |number| @server.host("host#{number}.example", "192.0.2.#{number}") }
    @server.hold(40) # no answer before all forty questions are there at once
    found = in_loop do |schedule|
      20.times.map { |number| schedule.call { Addrinfo.getaddrinfo("host#{number}.example", 80, nil, :STREAM) } }
    end

    expected = Array.new(20) { |number| ["192.0.2.#{number}:80"] }
    found.map! { |list| list.map(&:inspect_sockaddr) }

    assert_equal expected, found
  end

  def test_the_resolver_replaces_no_method_of_the_scheduler
    command = [RbConfig.ruby, "-W", "-r#{ROOT}/bin/support/gem_paths", "-I#{ROOT}/lib", "-e",
               "require 'heddle/scheduler'; require 'heddle/net/scheduler_resolver'; p Heddle::Scheduler.new.resolver"]
    output, = Open3.capture2e(*command)

    assert_match(/^#<Heddle::Net::Resolver/, output)
    refute_match(/method redefined/, output)
  end

  def test_the_first_lookup_warns_of_nothing
    out, status = Open3.capture2e(RbConfig.ruby, "-w", "-I#{ROOT}/lib", stdin_data: <<~RUBY)
      require "heddle/runtime"
      require "socket"
      Heddle.run { puts Addrinfo.getaddrinfo("localhost", 80).any? }
    RUBY

    assert_predicate status, :success?
    assert_equal "true\n", out
  end

  def test_a_slow_name_server_delays_only_the_asking_fiber
    @server.host("slow.example", "192.0.2.1")
    @server.hold
    ticks = 0
    found, = in_loop do |schedule|
      asker = schedule.call { Addrinfo.tcp("slow.example", 80).ip_address }
      ticker = schedule.call do
        50.times { sleep(0.001) && ticks += 1 }
        @server.release # a loop that stands still never comes here
      end
      [asker, ticker]
    end

    assert_equal "192.0.2.1", found
    assert_equal 50, ticks
  end

  def test_tcp_socket_by_name_asks_the_resolver_and_connects
    @server.host("web.example", "127.0.0.1")
    listener = TCPServer.new("127.0.0.1", 0)
    answer, = in_loop do |schedule|
      [
        schedule.call { TCPSocket.open("web.example", listener.addr[1], &:read) },
        schedule.call { listener.accept.then { |socket| socket.write("hello") && socket.close } }
      ]
    end

    assert_equal "hello", answer
    assert_equal 2, @server.questions("web.example").size
  ensure
    listener&.close
  end

  def test_net_http_by_name_while_the_name_server_is_slow
    8.times { |number| @server.host("web#{number}.example", "127.0.0.1") }
    @server.hold(16)
    listener = TCPServer.new("127.0.0.1", 0)
    answers = in_loop do |schedule|
      clients = 8.times.map do |number|
        schedule.call { Net::HTTP.get(URI("http://web#{number}.example:#{listener.addr[1]}/")) }
      end
      clients << schedule.call { 8.times { serve_one(listener) } }
    end
    hosts = answers.first(8).map { |text| text[/[^:]+/] }

    assert_equal Array.new(8) { |number| "web#{number}.example" }, hosts
  ensure
    listener&.close
  end

  def test_a_name_that_does_not_exist_ends_as_without_a_scheduler
    error, = in_loop { |schedule| [schedule.call { TCPSocket.new("nobody.example", 80) }] }

    assert_kind_of Socket::ResolutionError, error
    assert_equal Socket::EAI_NONAME, error.error_code
  end

  # Ruby takes no zone out of what the hook returns: only libc's own reading of the address keeps it.
  def test_a_zone_reaches_the_socket_address
    loopback = Socket.getifaddrs.find { |interface| interface.addr&.ipv4_loopback? }.name
    found, = in_loop { |schedule| [schedule.call { Addrinfo.tcp("fe80::1%#{loopback}", 80).inspect_sockaddr }] }

    assert_equal "[fe80::1%#{loopback}]:80", found
    assert_empty @server.questions
  end

  def test_a_failing_name_server_is_a_temporary_failure
    @server.on("sick.example") { |query, *| @server.failure(query, 2) }
    error, = in_loop { |schedule| [schedule.call { TCPSocket.new("sick.example", 80) }] }

    assert_kind_of Socket::ResolutionError, error
    assert_equal Socket::EAI_AGAIN, error.error_code
    assert_match(/sick\.example.*SERVFAIL/, error.message)
  end

  def test_fibers_that_ask_for_one_name_share_a_query
    @server.host("web.example", "192.0.2.1", ttl: 0)
    @server.hold
    found = in_loop do |schedule|
      askers = Array.new(10) { schedule.call { Addrinfo.ip("web.example").ip_address } }
      askers << schedule.call do
        sleep(0.001) until waiting("web.example") == 9
        @server.release
      end
    end

    assert_equal ["192.0.2.1"] * 10, found.first(10)
    assert_equal 2, @server.questions.size
  end

  def test_a_cancelled_first_asker_leaves_the_lookup_to_the_others
    @server.host("web.example", "192.0.2.1")
    @server.hold
    found = in_loop do |schedule, scheduler|
      first = nil
      askers = Array.new(4) do |number|
        schedule.call do
          first = Fiber.current if number.zero?
          Addrinfo.ip("web.example").ip_address
        end
      end
      askers << schedule.call do
        sleep(0.001) until waiting("web.example") == 3
        scheduler.interrupt(first, Heddle::Cancelled.new)
        sleep(0.001) until waiting("web.example") == 2
        @server.release
      end
    end

    assert_kind_of Heddle::Cancelled, found.first
    assert_equal ["192.0.2.1"] * 3, found[1, 3]
  end

  def test_a_timed_out_first_asker_leaves_the_lookup_to_the_others
    @server.host("web.example", "192.0.2.1")
    @server.hold
    found = in_loop do |schedule|
      first = schedule.call { Timeout.timeout(0.05) { Addrinfo.ip("web.example").ip_address } }
      second = schedule.call { Addrinfo.ip("web.example").ip_address }
      releaser = schedule.call do
        sleep(0.001) until first.any?
        @server.release
      end
      [first, second, releaser]
    end

    assert_kind_of Timeout::Error, found[0]
    assert_equal "192.0.2.1", found[1]
  end

  def test_all_askers_of_a_turn_cancelled_at_once_leave_nothing_behind
    @server.host("web.example", "192.0.2.1")
    @server.hold
    found = in_loop do |schedule, scheduler|
      fibers = []
      askers = Array.new(3) { schedule.call { (fibers << Fiber.current) && Addrinfo.ip("web.example") } }
      last = schedule.call { Addrinfo.ip("web.example").ip_address }
      releaser = schedule.call do
        sleep(0.001) until waiting("web.example") == 3
        fibers.each { |fiber| scheduler.interrupt(fiber, Heddle::Cancelled.new) }
        sleep(0.001) until waiting("web.example").zero?
        @server.release
      end
      [*askers, last, releaser]
    end

    assert(found.first(3).all?(Heddle::Cancelled))
    assert_equal "192.0.2.1", found[3]
    assert_equal 0, flights.size
  end

  def test_a_cut_off_answer_is_fetched_by_tcp_in_a_fiber
    many = Array.new(100) { |number| "192.0.2.#{number + 1}" }
    @server.host("many.example", *many)
    @server.truncate("many.example")
    found, = in_loop { |schedule| [schedule.call { Addrinfo.getaddrinfo("many.example", 80, nil, :STREAM) }] }

    assert_equal many, found.map(&:ip_address)
  end

  def test_a_lookup_in_libc_does_not_delay_other_fibers
    gate = Thread::Queue.new
    lookup = ->(_) { gate.pop && [Addrinfo.tcp("192.0.2.44", 0)] }
    nsswitch = File.join(@folder, "nsswitch.conf")
    File.write(nsswitch, "hosts: files ldap\n")
    @resolver = Heddle::Net::Resolver.new(hosts: @hosts, nsswitch: nsswitch)
    @resolver.instance_variable_set(:@system, Heddle::Net::Resolver::SystemResolver.new(lookup))
    found, = in_loop do |schedule|
      [
        schedule.call { Addrinfo.ip("printer.example").ip_address },
        schedule.call { 20.times { sleep 0.001 } && gate.push(true) }
      ]
    end

    assert_equal "192.0.2.44", found
  end

  private

  # A loop in a thread of its own. The block gets a lambda that starts a fiber and returns the Array into which its
  # value, or its error, will go; it returns these Arrays.
  def in_loop
    @resolver ||= resolver_for(@server, timeout: 60, attempts: 1)
    results = nil
    thread = Thread.new do
      scheduler = Heddle::Scheduler.new(selector: selector_under_test)
      scheduler.resolver = @resolver
      Fiber.set_scheduler(scheduler)
      results = yield(method(:start), scheduler)
    end
    unless thread.join(60)
      thread.kill

      flunk "the loop did not end within a minute"
    end
    results.map(&:first)
  end

  def start
    result = []
    Fiber.schedule do
      result << yield
    rescue Exception => e
      result << e
    end
    result
  end

  def serve_one(listener)
    socket = listener.accept
    host = nil
    while (line = socket.gets) && line != "\r\n"
      host = line[/\AHost: (.*)\r\n/, 1] || host
    end
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: #{host.bytesize}\r\nConnection: close\r\n\r\n#{host}")
    socket.close
  end

  def flights = @resolver.instance_variable_get(:@flights)

  def waiting(name) = flights.waiting(name)
end
