# frozen_string_literal: true

require "test_helper"
require "socket"
require_relative "../../../benchmark/support/bench"
require_relative "../../../benchmark/http/native"
require_relative "../../../benchmark/stalls/application"
require_relative "../../../benchmark/stalls/services"

class StallsBenchmarkLibrariesTest < Minitest::Test
  SERVICES = { postgresql: %w[pg pg-sync], mariadb: %w[mysql2], http: %w[net-http], lock: %w[flock] }.freeze

  def setup
    @kinds = Bench::Stalls::Libraries.new.kinds
  end

  SERVICES.each do |service, kinds|
    define_method("test_#{kinds.join("_and_").tr("-", "_")}_wait_for_as_long_as_is_asked") do
      need(service)
      with(service) do
        (kinds * 2).each do |kind|
          began = now
          @kinds.fetch(kind).call(30)

          assert_operator now - began, :>=, 0.029, kind
        end
      end
    end
  end

  def test_a_ticker_tells_how_late_each_of_its_sleeps_was
    late = @kinds.fetch("ticker").call(50).split.map(&:to_f)

    assert_includes 1..3, late.size
    assert(late.all? { |figure| figure > -0.5 })
  end

  def test_a_native_call_costs_something
    need_program("cc")
    costs = Bench::Stalls::NativeCallCost.new(Fiddle.dlopen(Bench::HTTP::Native.program("work.so"))).kinds

    assert_equal %w[call call-inline], costs.keys
    costs.each_value { |cost| assert_match(/\A-?\d+\.\d+(e-\d+)?\z/, cost.call(1_000)) }
  end

  private

  def need(service)
    skip "needs postgres" if service == :postgresql && !PrivatePostgresql.programs
    skip "needs mariadbd" if service == :mariadb && !PrivateMariadb.program
  end

  # In an environment that says where it is, as the application of a server is.
  def with(service)
    during(service) do |environment|
      before = ENV.to_h.slice(*environment.keys)
      ENV.update(environment)
      yield
    ensure
      environment.each_key { |name| ENV[name] = before[name] }
    end
  end

  # The benchmark's own server that answers late needs a gem that only bin/bench installs.
  def during(service, &)
    return Bench::Stalls::Services.during(service, &) unless service == :http

    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { answer_late(server.accept) } }
    yield({ Bench::Stalls::Libraries::HTTP => "http://127.0.0.1:#{server.local_address.ip_port}" })
  ensure
    thread&.kill
    server&.close
  end

  def answer_late(client)
    seconds = Float(client.gets[%r{/([\d.]+)}, 1])
    nil until client.gets.strip.empty?
    sleep(seconds)
    client.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ndone\n")
    client.close
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
