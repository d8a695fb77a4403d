# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# The option early_hints: which clients get 103 Early Hints, and how many.
class ServerEarlyHintsTest < Minitest::Test
  include ServerHelpers

  def teardown = stop

  def hint(env, name) = env["rack.early_hints"].call("link" => "</#{name}>; rel=preload")

  # Hints three times, as Rails does: once a tag.
  def hinting
    lambda do |env|
      # Without a pause between them, or they are two responses.
      Heddle.without_preemption { 3.times { |number| hint(env, number) } } if env["rack.early_hints"]
      [200, { "content-type" => "text/plain" }, ["done"]]
    end
  end

  def ask(*fields, version: "1.1")
    lines = ["GET / HTTP/#{version}", "Host: a", "Connection: close", *fields]
    exchange("#{lines.join("\r\n")}\r\n\r\n")
  end

  def statuses(answers) = answers.scan(%r{^HTTP/1\.[01] (\d+)}).flatten

  def test_early_hints_are_off_by_default_as_in_puma
    serving(hinting) { assert_equal ["200"], statuses(ask) }
  end

  def test_several_hints_are_one_response
    serving(hinting, early_hints: :on) do
      answers = ask

      assert_equal %w[103 200], statuses(answers)
      assert_equal (0..2).map { |number| "link: </#{number}>; rel=preload" }, answers.lines(chomp: true).grep(/^link/)
      assert_operator answers, :end_with?, "done"
    end
  end

  def test_early_hints_are_sent_at_once_each_in_its_own_response
    go = Thread::Queue.new
    app = lambda do |env|
      Heddle.without_preemption { 2.times { |number| hint(env, number) } }
      go.pop
      hint(env, 2)
      [200, {}, []]
    end
    serving(app, early_hints: :on) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      socket.wait_readable(PATIENCE)
      first = socket.readpartial(4_096)
      go << true

      assert_equal ["103"], statuses(first)
      assert_equal 2, first.scan(/^link/).size
      rest = socket.read

      assert_equal [%w[103 200], 1], [statuses(rest), rest.scan(/^link/).size]
    ensure
      go << true
      socket&.close
    end
  end

  # nginx before 1.29 takes a 103 for the response.
  def test_requests_through_a_proxy_get_no_early_hints
    [%w[loopback], ["192.0.2.0/24"]].each do |trusted_proxies|
      serving(hinting, early_hints: :on, trusted_proxies:) do
        ["Via: 1.1 proxy", "X-Forwarded-For: 192.0.2.1", "x-forwarded-proto: https", "Forwarded: for=192.0.2.1",
         "X-Real-IP: 192.0.2.1", "X-Forwarded-Client-Cert: Hash=1"].each do |field|
          assert_equal ["200"], statuses(ask(field)), field
        end
        assert_equal %w[103 200], statuses(ask("X-Forward: 1", "Forwarded-For: 2"))
      end
    end
  end

  def test_always_sends_them_through_a_proxy_too
    serving(hinting, early_hints: :always) { assert_equal %w[103 200], statuses(ask("Via: 1.1 proxy")) }
  end

  def test_http_one_zero_does_not_know_them
    serving(hinting, early_hints: :always) { assert_equal ["200"], statuses(ask(version: "1.0")) }
  end

  def test_hints_that_are_no_header_are_the_applications_mistake
    serving(->(env) { env["rack.early_hints"].call("link" => "a\nb") }, early_hints: :on, lint: false) do
      assert_equal ["500"], statuses(ask)
    end
  end

  def test_large_early_hints_are_sent_in_several_responses
    app = lambda do |env|
      20.times { |number| hint(env, "#{number}#{"x" * 1_000}") }
      [200, {}, []]
    end
    serving(app, early_hints: :on) do
      answers = ask

      assert_equal ["103"], statuses(answers)[..-2].uniq
      assert_equal [20, "200"], [answers.scan(/^link/).size, statuses(answers).last]
    end
  end
end
