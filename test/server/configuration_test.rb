# frozen_string_literal: true

require "test_helper"
require "heddle/server"

class ConfigurationTest < Minitest::Test
  Configuration = Heddle::Server::Configuration
  Options = Heddle::Options
  Wrong = Heddle::Server::ConfigurationError

  def load(flags = {}, environment = {}) = Configuration.load(flags:, environment:)

  def test_options_that_mode_ractor_lacks_are_rejected
    load = ->(**flags) { Configuration.load(flags: { mode: "ractor", **flags }, environment: {}, file: nil) }
    error = assert_raises(Heddle::Server::ConfigurationError) { load.call(selector: "io_uring") }

    assert_match(/\Aselector io_uring \(--selector\) does not work in mode ractor: .* :epoll, or leave it out\z/,
                 error.message)
    error = assert_raises(Heddle::Server::ConfigurationError) { load.call(bind: ["tls://localhost"]).binds }

    assert_match(/\A--bind with TLS does not work in mode ractor: .* set mode :fiber\z/, error.message)
    found = load.call(request_timeout: "1.5")

    assert_equal [[], 1.5], [found.protections, found.request_timeout]
  end

  def test_in_single_mode_the_process_that_was_started_serves
    configuration = Configuration.load(flags: { mode: "single", workers: "4", threads: "3" }, environment: {},
                                       file: nil)

    assert_equal [1, false], [configuration.worker_count, configuration.worker_processes?]
  end

  def test_addresses_without_a_port_are_shown_with_the_option_port
    bind = %w[0.0.0.0 [::1]:80 tcp://a?reuse_port=on unix:s.sock systemd:web]

    assert_equal %w[0.0.0.0:3000 [::1]:80 tcp://a:3000?reuse_port=on unix:s.sock systemd:web],
                 load(bind:, port: "3000").addresses_with_ports
    assert_equal ["localhost:3000"], load(port: "3000").addresses_with_ports
  end

  def test_auto_workers_fit_into_the_memory
    auto = Configuration.load(flags: { workers: "auto" }, environment: {}, file: nil)
    fit = ->(application, budget) { auto.fit_memory(application, 20, budget).workers }
    all = auto.worker_count

    assert_equal [1, 1, 2], [fit.call(100, 319), fit.call(100, 10), fit.call(100, 320)]
    assert_equal all, auto.fit_memory(100, 20, 1_000_000).worker_count
    assert_equal [:auto] * 2, [fit.call(nil, 100), fit.call(100, nil)], "not known"
    assert_equal 4, Configuration.new(workers: 4).fit_memory(100, 20, 100).workers
  end

  def test_each_option_comes_from_its_flag_else_the_environment_else_its_default
    assert_equal 9_292, load.port
    assert_equal 3_000, load({}, { "PORT" => "3000" }).port
    assert_equal 4_000, load({}, { "PORT" => "3000", "HEDDLE_PORT" => "4000" }).port
    assert_equal 5_000, load({ port: "5000" }, { "PORT" => "3000" }).port
    assert_equal 9_292, load({}, { "PORT" => "" }).port
  end

  def stop_times(flags = {}, environment = {})
    load(flags, environment).then { |found| [found.drain_delay, found.stop_timeout] }
  end

  POD = { "KUBERNETES_SERVICE_HOST" => "10.0.0.1" }.freeze

  def test_drain_delay_is_five_seconds_in_kubernetes_and_stop_timeout_has_the_rest
    assert_equal [0, 25], stop_times
    assert_equal [5, 20], stop_times({}, POD)
    assert_equal [8, 17], stop_times({ drain_delay: "8" }, POD)
    assert_equal [0, 60], stop_times({ stop_timeout: "60" })
    assert_equal [0, 60], stop_times({ stop_timeout: "60", drain_delay: "0" }, POD)
    assert_equal "KUBERNETES_SERVICE_HOST", load({}, POD).source(:drain_delay).to_s
  end

  def test_drain_delay_of_30_seconds_is_rejected_unless_stop_timeout_is_set
    error = assert_raises(Wrong) { load({ drain_delay: "40" }, POD) }

    assert_equal "drain_delay (--drain-delay) is 40 s, but Kubernetes kills a pod after 30 s by default. " \
                 "Lower drain_delay, or set stop_timeout, too; in Kubernetes, set terminationGracePeriodSeconds " \
                 "above the sum of both", error.message
    assert_equal [40, 60], stop_times({ drain_delay: "40", stop_timeout: "60" }, POD)
    assert_equal [5, 40], stop_times({ stop_timeout: "40" }, POD), "as Puma's file said"
  end

  def test_health_paths_are_paths
    assert_equal [%w[/up], [], %w[/a /b]],
                 [load, load({ health_paths: "off" }), load({ health_paths: "/a,/b" })].map(&:health_paths)
    error = assert_raises(Wrong) { load({ health_paths: "up" }) }

    assert_equal "health_paths (--health-paths) must be off or paths that begin with /, but is \"up\"", error.message
  end

  def test_there_are_at_most_66_options
    assert_operator Heddle::Options::ALL.size, :<=, 66
  end

  def test_every_option_has_a_flag_an_environment_variable_and_a_text
    Options::ALL.each do |option|
      assert_match(/\A--[a-z0-9-]+\z/, option.flag)
      assert_equal "HEDDLE_#{option.name.to_s.upcase}", option.variables.first
      refute_empty option.text
    end
    assert_equal Options::ALL.map(&:flag).uniq.size, Options::ALL.size
  end

  def test_every_limit_of_http_is_an_option
    configuration = load({ head_timeout: "2.5", header_limit: "64k", body_limit: "2g", underscore_headers: true },
                         { "HEDDLE_BODY_RATE" => "1k" })

    assert_equal([2.5, 65_536, 2_147_483_648, true, 1_024],
                 %i[head_timeout header_limit body_limit underscore_headers body_rate].map do |name|
                   configuration.http.public_send(name)
                 end)
    assert_predicate configuration, :frozen?
  end

  def test_a_wrong_value_is_refused_where_it_was_written
    { { port: "x" } => "--port must be a whole number, but is \"x\"",
      { port: "70000" } => "--port must be from 0 to 65535, but is 70000",
      { port: "-1" } => "--port must be a whole number",
      { header_limit: "12q" } => "--header-limit must be a number of bytes",
      { header_limit: "1" } => "--header-limit must be from 1024 to ",
      { http2_streams: "70000" } => "--http2-streams must be from 1 to 10000, but is 70000",
      { head_timeout: "soon" } => "--head-timeout must be a number of seconds",
      { workers: "some" } => "--workers must be auto or a whole number, but is \"some\"",
      { workers: "1000000" } => "--workers must be from 0 to 10000, but is 1000000",
      { access_log: "perhaps" } => "--access-log must be on or off" }
      .each do |flags, message|
        error = assert_raises(Wrong, flags.inspect) { load(flags) }
        assert_operator error.message, :start_with?, message
      end
    error = assert_raises(Wrong) { load({}, { "HEDDLE_STOP_TIMEOUT" => "long" }) }
    assert_operator error.message, :start_with?, "HEDDLE_STOP_TIMEOUT must be"
    assert_raises(Wrong) { Configuration.new(prot: 1) }
    assert_raises(Wrong) { Configuration.new(head_timeout: "soon") }
  end

  def test_switches_in_the_environment
    assert_equal([true, false, false], %w[on 0 no].map { |text| load({}, { "HEDDLE_ACCESS_LOG" => text }).access_log })
  end

  def test_addresses
    { "localhost" => ["localhost", 9_292], "0.0.0.0:80" => ["0.0.0.0", 80], ":80" => ["0.0.0.0", 80],
      "[::1]:80" => ["::1", 80],
      "[::]" => ["::", 9_292], "tcp://example.org:1" => ["example.org", 1], "tcp:a:1" => ["a", 1], "a:0" => ["a", 0] }
      .each do |text, expected|
        bind = load({ bind: [text] }).binds.first

        assert_equal expected, [bind.host, bind.port], text
      end
    assert_equal(%w[/x/y /x/y /z], %w[unix:/x/y unix:///x/y unix:/z?mode=660].map do |text|
      load({ bind: [text] }).binds.first.path
    end)
    assert_equal 2, load({ bind: ["a:1", "b:2"] }).binds.size
    assert_equal 2, load({}, { "HEDDLE_BIND" => "a:1, b:2" }).binds.size
    ["a:b", "::1", "a:70000", "[::1", "a:1:2", "unix:", "unix:/x?mode=999", ""].each do |text|
      assert_raises(Wrong, text.inspect) { load({ bind: [text] }).binds }
    end
  end

  def test_in_development_the_stall_report_brings_the_callback_report
    on = lambda do |environment, **flags|
      Heddle::Server::Configuration.load(flags: { environment:, **flags }, environment: {}, file: nil)
                                   .protections.include?(:callback_report)
    end

    assert on.call("development")
    refute on.call("production")
    refute on.call("development", protect: "off")
    assert on.call("production", protect: "offload,callback_report")
    refute on.call("development", mode: "thread")
  end
end
