# frozen_string_literal: true

require_relative "support/dns_case"

# How many responses over UDP a network gets, on a clock that the test sets; and a server with that limit.
class DNSRateLimitTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  RateLimit = DNS::RateLimit

  def setup
    @now = 0.0
    @limit = RateLimit.new(5, exempt: Heddle::Net::Networks.new(%w[loopback]))
  end

  def judge(address) = Process.stub(:clock_gettime, @now) { @limit.judge(IPAddr.new(address).hton) }

  def test_beyond_the_rate_every_second_response_is_cut_off_and_the_others_are_dropped
    verdicts = Array.new(9) { judge("192.0.2.1") }

    assert_equal [*[nil] * 5, :drop, :truncate, :drop, :truncate], verdicts
  end

  def test_all_addresses_of_a_network_share_one_limit
    5.times { |number| assert_nil judge("192.0.2.#{number}") }
    5.times { |number| assert_nil judge("2001:db8:0:#{number}::1") }

    assert_equal :drop, judge("192.0.2.250")
    assert_equal :drop, judge("2001:db8:0:ff::1")
    assert_nil judge("192.0.3.1")
    assert_nil judge("2001:db8:0:100::1")
  end

  def test_the_rate_recovers_with_time
    5.times { judge("192.0.2.1") }
    @now += 0.4

    assert_equal [nil, nil, :drop], Array.new(3) { judge("192.0.2.1") }
    @now += 60

    assert_equal [nil] * 5, Array.new(5) { judge("192.0.2.1") }
    refute_nil judge("192.0.2.1")
  end

  def test_exempt_networks_have_no_limit
    20.times { assert_nil judge("127.0.0.1") }
    20.times { assert_nil judge("::1") }
    assert_equal 0, @limit.size
  end

  def test_the_number_of_remembered_networks_is_bounded
    (RateLimit::NETWORKS + 10).times { |number| @limit.judge([0x0a00_0000 + (number << 8)].pack("N")) }

    assert_equal RateLimit::NETWORKS, @limit.size
  end

  def test_a_client_with_a_truncated_response_is_answered_over_tcp
    serving(->(query) { query.answer("192.0.2.1") }, rate: 1, rate_exempt: %w[none]) do |dns|
      assert_equal 1, dns.ask("a.test", :A).answers.size
      socket = UDPSocket.new
      socket.connect("127.0.0.1", dns.port)
      query = DNS::Message.query("a.test", :A).encode
      # One is dropped, the other cut off; more may pass where this took long.
      answer = until_truncated(socket, query)

      assert_equal ["a.test", []], [answer.question.name, answer.answers]
      dns.tcp do |tcp|
        tcp.write(framed(query))

        assert_equal 1, read_framed(tcp).answers.size
      end
    ensure
      socket&.close
    end
  end

  def test_an_invalid_rate_raises_with_its_value
    [0, -1, 1.5, "5"].each do |rate|
      error = assert_raises(ArgumentError) { DNS::Server.new("127.0.0.1:0", rate:) { nil } }

      assert_includes error.message, "rate is #{rate.inspect}, but must be an Integer of at least 1"
    end
  end

  private

  def until_truncated(socket, query)
    loop do
      4.times { socket.send(query, 0) }

      assert socket.wait_readable(LIMIT), "no response was cut off"
      while (bytes = socket.recv_nonblock(512, exception: false)) != :wait_readable
        answer = DNS::Message.parse(bytes)
        return answer if answer.truncated?
      end
    end
  end
end
