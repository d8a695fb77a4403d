# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "json"
require "open3"
require "rbconfig"
require "shellwords"
require "tmpdir"
require "yaml"
require_relative "../server/server_helpers"

# What the files of examples/deploy say is what Heddle understands, and their times fit together.
class DeployExampleTest < Minitest::Test
  include ServerHelpers

  FOLDER = File.expand_path("../../examples/deploy", __dir__)

  def file(name) = File.read(File.join(FOLDER, name))

  # @param words [Array<String>] a command line that has `heddle serve` in it
  # @return [Heddle::Server::Configuration]
  def configuration_of(words, environment = {})
    flags = Heddle::CLI::Flags.new(words.drop(words.index("serve") + 1))

    assert_empty flags.rest
    Heddle::Server::Configuration.load(flags: flags.values, environment:, file: nil)
  end

  # @return [Array<String>] the values of a setting
  def settings(unit, name) = unit.scan(/^#{name}=(.*)$/).flatten

  def test_systemd_finds_nothing_wrong_with_the_units
    Dir.mktmpdir do |folder|
      units = %w[shop.service shop.socket].map do |name|
        File.join(folder, name).tap do |path|
          File.write(path, file("systemd/#{name}").gsub("/usr/bin/bundle", RbConfig.ruby))
        end
      end
      output, status = Open3.capture2e(need_program("systemd-analyze"), "verify", *units)

      assert_predicate status, :success?, output
      refute_match(/shop\.(?:service|socket)/, output)
    end
  end

  def test_systemd_judges_the_unit_file_as_safe
    output, = Open3.capture2e(need_program("systemd-analyze"), "security", "--offline=true",
                              File.join(FOLDER, "systemd/shop.service"))

    assert_operator output[/Overall exposure level for shop.service: ([\d.]+)/, 1].to_f, :<=, 3.0, output
  end

  # Those that the extension makes without a function of libc are the newest ones, which filters forget.
  def test_the_unit_file_allows_the_system_calls_of_the_extension
    calls = Dir[File.expand_path("../../ext/heddle/**/*.[ch]", __dir__)].flat_map do |path|
      File.read(path).scan(/\b(?:SYS|__NR)_(\w+)/).flatten
    end
    allowed = settings(file("systemd/shop.service"), "SystemCallFilter").flat_map { |set| calls_of(set) }

    assert_includes calls, "io_uring_enter"
    assert_empty calls.uniq - allowed
  end

  # The calls of a set and of those in it; of "~@set" none.
  def calls_of(set)
    return [] if set.start_with?("~")
    return [set] unless set.start_with?("@")

    output, = Open3.capture2e(need_program("systemd-analyze"), "syscall-filter", set)
    output.lines.drop(1).map(&:strip).reject { |line| line.empty? || line.start_with?("#") }
          .flat_map { |one| calls_of(one) }
  end

  def test_the_unit_file_uses_existing_options_and_a_sufficient_stop_timeout
    unit = file("systemd/shop.service")
    configuration = configuration_of(settings(unit, "ExecStart").first.shellsplit)

    assert_equal ["systemd"], configuration.bind
    assert_equal ["notify"], settings(unit, "Type")
    assert_operator settings(unit, "TimeoutStopSec").first.to_i, :>, configuration.stop_timeout
    reload = settings(unit, "ExecReload").first.shellsplit

    assert_includes Heddle::CLI::COMMANDS.keys, reload[reload.index("heddle") + 1]
    assert_equal configuration.control, [reload.last], "commands and server mean the same socket"
  end

  def test_the_image_runs_what_heddle_knows_and_asks_for_its_health_where_that_is
    text = file("docker/Dockerfile")
    configuration = configuration_of(JSON.parse(text[/^CMD (\[.*\])$/, 1]))
    health = URI(text[/^HEALTHCHECK .* (http\S+)/, 1])

    assert_equal ["0.0.0.0:3000"], configuration.bind
    assert_equal ["tcp://0.0.0.0:9293"], configuration.control
    assert_equal [9_293, "/health/live"], [health.port, health.path]
    compose = YAML.safe_load(file("docker/compose.yaml"))["services"]["web"]

    assert_operator compose["stop_grace_period"].to_i, :>, configuration.stop_timeout
    assert_equal ["3000:3000"], compose["ports"]
    variables = text.scan(/HEDDLE_\w+/) + compose["environment"].keys.grep(/HEDDLE_|WEB_CONCURRENCY/)

    assert_empty variables - Heddle::Options.variables
  end

  def test_kubernetes_probes_are_answered_and_its_patience_suffices
    deployment, service = YAML.load_stream(file("kubernetes/shop.yaml"))
    pod = deployment["spec"]["template"]
    container = pod["spec"]["containers"].first
    configuration = configuration_of(container["args"], "KUBERNETES_SERVICE_HOST" => "10.0.0.1")
    ports = container["ports"].to_h { |port| [port["name"], port["containerPort"]] }

    assert_equal({ "http" => configuration.bind.first[/\d+\z/].to_i,
                   "control" => configuration.control.first[/\d+\z/].to_i }, ports)
    together = configuration.drain_delay + configuration.stop_timeout

    assert_operator pod["spec"]["terminationGracePeriodSeconds"], :>, together
    assert_operator container["readinessProbe"]["periodSeconds"], :<, configuration.drain_delay
    assert_equal "http", service["spec"]["ports"].first["targetPort"]
    assert_equal ports["control"].to_s, pod["metadata"]["annotations"]["prometheus.io/port"]
    probes = %w[startupProbe readinessProbe livenessProbe].map { |name| container[name]["httpGet"] }

    assert_equal ["control"], probes.map { |probe| probe["port"] }.uniq
    [*probes.map { |probe| probe["path"] }, pod["metadata"]["annotations"]["prometheus.io/path"]].each do |path|
      assert_equal "200", control_answer(path), path
    end
  ensure
    @control&.stop
    stop
  end

  def control_answer(path)
    unless @control
      start(text, control: ["tcp://127.0.0.1:0", "unix:#{Dir.mktmpdir}/control.sock"])
      source = Heddle::Server::Control::SingleProcess.new(server, @log)
      @control = Heddle::Server::Control.open(server.configuration, source, @log)
      @control.start
    end
    address = @control.urls.find { |url| url.start_with?("http") }
    Net::HTTP.get_response(URI("#{address}#{path}")).code
  end

  def test_kamal_waits_as_long_as_the_server_does
    deploy = YAML.safe_load(file("kamal/deploy.yml"))

    assert_operator deploy["drain_timeout"], :>=, Heddle::Server::Configuration.new.stop_timeout
    assert_equal "/up", deploy["proxy"]["healthcheck"]["path"]
  end

  def test_each_file_stands_in_the_readme
    readme = file("README.md")
    files = Dir.glob("**/*", base: FOLDER).select { |name| File.file?(File.join(FOLDER, name)) } - ["README.md"]

    files.each { |name| assert_includes readme, File.basename(name) }
  end
end
