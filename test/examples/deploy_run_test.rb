# frozen_string_literal: true

require "test_helper"
require "etc"
require "json"
require "open3"
require "tmpdir"
require "yaml"
require "zlib"
require_relative "served_example"

# Operators' tools, used with a real server: logrotate, Kamal's proxy, and what checks files before they are used.
class DeployRunTest < Minitest::Test
  FOLDER = File.expand_path("../../examples/deploy", __dir__)
  PATIENCE = 60

  def teardown = @served&.stop

  def file(name) = File.read(File.join(FOLDER, name))

  def wait_until(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (found = yield)
      flunk "#{what}:\n#{@served.output}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
    found
  end

  # -- logrotate ------------------------------------------------------------------------------------------------------

  def rotate(logrotate, configuration)
    output, status = Open3.capture2e(logrotate, "--force", "--state", "#{configuration}.state", configuration)

    assert_predicate status, :success?, output
  end

  # Whoever runs the tests, in place of the application's user.
  def rotation_of(folder)
    owner = [Etc.getpwuid.name, Etc.getgrgid(Process.gid).name].join(" ")
    text = file("logrotate.conf").gsub("/srv/shop/log/heddle.log", File.join(folder, "heddle.log"))
    File.join(folder, "shop.conf").tap { |path| File.write(path, text.gsub("shop shop", owner), perm: 0o644) }
  end

  # Requests, one after the other, until one of them is told of in the new file.
  def ask_until_written(log, name)
    number = 0
    wait_until("nothing is written to the new file") do
      @served.get("/#{name}#{number += 1}")
      File.read(log).include?(" 200 GET /#{name}")
    end
    number
  end

  def test_logrotate_turns_the_log_over_twice_and_every_request_is_in_one_of_the_files
    logrotate = need_program("logrotate")
    Dir.mktmpdir do |folder|
      log = File.join(folder, "heddle.log")
      configuration = rotation_of(folder)
      File.write(File.join(folder, "config.ru"), 'run ->(_env) { [200, {}, ["hello"]] }')
      @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-p", "0", "--log-file", log], folder:)
      asked = %w[a b c].to_h do |name|
        count = ask_until_written(log, name)
        rotate(logrotate, configuration) unless name == "c"
        [name, count]
      end
      @served.stop
      written = Zlib.gunzip(File.binread("#{log}.2.gz")) + File.read("#{log}.1") + File.read(log)

      assert_equal asked.flat_map { |name, count| Array.new(count) { |i| "/#{name}#{i + 1}" } },
                   written.scan(%r{ 200 GET (/[abc]\d+)}).flatten # a stall's line names its request, too
    end
  end

  # -- Kamal ----------------------------------------------------------------------------------------------------------

  # As Kamal's proxy asks: until the first 200, each time for no longer than `timeout`.
  def healthy?(uri, check)
    Net::HTTP.start(uri.host, uri.port, open_timeout: check["timeout"], read_timeout: check["timeout"]) do |http|
      http.get(check["path"], "user-agent" => "kamal-proxy").code == "200"
    end
  rescue SystemCallError, Timeout::Error
    false
  end

  def test_kamals_proxy_finds_the_application_healthy_and_what_runs_is_answered_when_it_is_replaced
    skip "needs the gems of examples/rails: bin/setup" unless ServedExample.gems?("rails")
    check = YAML.safe_load(file("kamal/deploy.yml")).dig("proxy", "healthcheck")
    environment = ServedExample.bundle("rails").merge("RAILS_ENV" => "production", "SECRET_KEY_BASE" => "0" * 64,
                                                      "WEB_CONCURRENCY" => "2")
    command = JSON.parse(file("docker/Dockerfile")[/^CMD (\[.*\])$/, 1]).drop(3)
    words = command.map { |word| { "0.0.0.0:3000" => "127.0.0.1:0", "tcp://0.0.0.0:9293" => "off" }.fetch(word, word) }
    folder = File.join(FOLDER, "../rails")
    @served = ServedProcess.new([*ServedProcess::HEDDLE, *words], folder:, environment:)

    wait_until("it is never healthy") { healthy?(@served.uri, check) }
    running = Thread.new { @served.get("/nap?seconds=1").code }
    wait_until("the request is not served") { @served.output.include?(%(Started GET "/nap)) }
    Process.kill("TERM", @served.pid) # what docker stop does

    assert_equal "200", running.value
    assert_equal 0, @served.wait.exitstatus
  end

  # -- before they are used -------------------------------------------------------------------------------------------

  # As the reference of Docker has them.
  INSTRUCTIONS = %w[ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK RUN USER WORKDIR].freeze

  def instructions
    text = file("docker/Dockerfile").gsub(/^#.*\n/, "").gsub(/\\\n\s*/, "")
    text.lines.map(&:strip).reject(&:empty?).map { |line| line.split(" ", 2) }
  end

  def shell_reads(text) = Open3.capture2e("sh", "-n", "-c", text).then { |said, status| [said, status.success?] }

  def test_the_dockerfile_has_instructions_that_there_are_stages_that_come_before_and_commands_a_shell_can_read
    stages = []
    instructions.each do |name, rest|
      assert_includes INSTRUCTIONS, name
      stages << rest[/\bAS (\S+)/, 1] if name == "FROM"
      stage = rest[/--from=(\S+)/, 1]
      assert_includes stages, stage if stage
      JSON.parse(rest) if %w[CMD ENTRYPOINT].include?(name)
      assert_equal ["", true], shell_reads(rest), rest if name == "RUN"
    end
  end

  # The fields of the objects that are used, as Kubernetes' API (v1.30) has them: its server takes no others.
  FIELDS = {
    "apiVersion" => nil, "kind" => nil, "metadata" => { "name" => nil, "labels" => :any, "annotations" => :any },
    "spec" => {
      "replicas" => nil, "selector" => :any, "type" => nil,
      "strategy" => { "type" => nil, "rollingUpdate" => { "maxUnavailable" => nil, "maxSurge" => nil } },
      "ports" => { "name" => nil, "port" => nil, "targetPort" => nil, "protocol" => nil },
      "template" => {
        "metadata" => { "labels" => :any, "annotations" => :any },
        "spec" => {
          "terminationGracePeriodSeconds" => nil,
          "containers" => {
            "name" => nil, "image" => nil, "command" => nil, "args" => nil,
            "env" => { "name" => nil, "value" => nil, "valueFrom" => :any },
            "ports" => { "name" => nil, "containerPort" => nil, "protocol" => nil },
            **%w[startupProbe readinessProbe livenessProbe].to_h do |name|
              [name, { "httpGet" => { "path" => nil, "port" => nil }, "periodSeconds" => nil, "timeoutSeconds" => nil,
                       "failureThreshold" => nil, "successThreshold" => nil, "initialDelaySeconds" => nil }]
            end,
            "lifecycle" => { "preStop" => { "exec" => { "command" => nil } } },
            "resources" => { "requests" => :any, "limits" => :any }
          }
        }
      }
    }
  }.freeze

  def unknown(value, fields, place)
    return [] if fields == :any
    return value.flat_map { |one| unknown(one, fields, place) } if value.is_a?(Array)
    return [] unless value.is_a?(Hash)
    return [place] if fields.nil?

    value.flat_map { |key, one| fields.key?(key) ? unknown(one, fields[key], "#{place}.#{key}") : ["#{place}.#{key}"] }
  end

  def test_kubernetes_objects_have_no_field_that_there_is_not
    objects = YAML.load_stream(file("kubernetes/shop.yaml"))

    assert_equal [%w[apps/v1 Deployment], %w[v1 Service]], objects.map { |one| one.values_at("apiVersion", "kind") }
    assert_empty(objects.flat_map { |one| unknown(one, FIELDS, one["kind"]) })
    strings = objects.first["spec"]["template"]["spec"]["containers"].first["env"].map { |one| one["value"] }

    assert_equal [String], strings.map(&:class).uniq, "numbers must be in quotes"
  end
end
