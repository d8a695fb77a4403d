# frozen_string_literal: true

require "test_helper"
require "json"
require "net/http"
require "open3"
require "socket"
require "tmpdir"
require "heddle/server"
require "support/served_process"
require "support/free_port"

# examples/monitoring: a real Prometheus scrapes a server, loads the alerts, and can evaluate every query.
class MonitoringExampleTest < Minitest::Test
  FOLDER = File.join(ROOT, "examples/monitoring")
  ALERTS = File.join(FOLDER, "alerts.yml")
  QUERIES = JSON.parse(File.read(File.join(FOLDER, "dashboard.json")))["panels"]
                .flat_map { |panel| panel["targets"].to_a.map { |target| target["expr"] } }
  METRIC = /\b(?:heddle|http_server|http_client|db_client|process)_\w+/
  # What Grafana fills in.
  VARIABLES = { "$job" => ".*", "$instance" => ".*", "$__rate_interval" => "30s" }.freeze
  # Queries that have a result even where nothing has gone wrong, and without a database.
  QUIET = /> 0\z|topk|limit|_pool_/
  # Prometheus, as examples/monitoring/prometheus.yml has it, but every half second.
  class Prometheus
    def initialize(program, target)
      @folder = Dir.mktmpdir
      @port = FreePort.find
      text = File.read(File.join(FOLDER, "prometheus.yml"))
      text = text.gsub("127.0.0.1:9293", target).gsub("15s", "500ms").sub("alerts.yml", ALERTS)
      File.write(File.join(@folder, "prometheus.yml"), text)
      @pid = spawn(program, "--config.file=#{@folder}/prometheus.yml", "--storage.tsdb.path=#{@folder}/data",
                   "--web.listen-address=127.0.0.1:#{@port}", chdir: @folder, %i[out err] => "#{@folder}/log")
    end

    def stop
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
    ensure
      FileUtils.remove_entry(@folder)
    end

    # Waits until the block accepts the response.
    def await(path, **parameters)
      deadline = Heddle::MonotonicClock.now + 60
      loop do
        found = ask(path, **parameters)
        return found if found && yield(found)
        raise "#{path}: #{found}\n#{File.read("#{@folder}/log")}" if Heddle::MonotonicClock.now > deadline

        sleep 0.05
      end
    end

    def ask(path, **parameters)
      query = URI.encode_www_form(parameters)
      JSON.parse(Net::HTTP.get(URI("http://127.0.0.1:#{@port}/api/v1/#{path}?#{query}")))["data"]
    rescue SystemCallError, JSON::ParserError, EOFError
      nil # it starts
    end
  end

  def test_metrics_that_alerts_and_dashboard_name_exist
    report = { workers: [], certificates: [], master: { memory: 1, memory_limit: 1 } }
    there = Heddle::Server::Metrics.new(report).to_s.scan(/^# TYPE (\S+)/).flatten
    named = [File.read(ALERTS), *QUERIES].flat_map { |text| text.scan(METRIC) }.uniq
    missing = named.reject { |name| there.include?(name.delete_suffix("_bucket")) }

    assert_operator named.size, :>, 25
    assert_empty missing
  end

  def test_promtool_accepts_the_files_and_each_alert_fires_as_it_should
    promtool = need_program("promtool")
    [%w[check config prometheus.yml], %w[check rules alerts.yml], %w[test rules alerts_test.yml]].each do |command|
      output, status = Open3.capture2e(promtool, *command, chdir: FOLDER)

      assert_predicate status, :success?, output
    end
    alerts = File.read(ALERTS).scan(/alert: (\w+)/).flatten
    fired = File.read(File.join(FOLDER, "alerts_test.yml")).scan(/alertname="(\w+)"/).flatten

    assert_equal alerts.sort, fired.sort
  end

  def test_prometheus_evaluates_the_alerts_and_the_queries_of_the_dashboard
    served = serve
    prometheus = Prometheus.new(need_program("prometheus"), @control)
    prometheus.await("targets") { |found| found["activeTargets"].any? { |target| target["health"] == "up" } }
    served.get("/")

    queries = QUERIES.map { |query| VARIABLES.reduce(query) { |text, (name, value)| text.gsub(name, value) } }
    queries.each do |query|
      prometheus.await("query", query:) { |found| found["result"].any? || query.match?(QUIET) }
    end
    found = prometheus.await("rules") { |now| now["groups"].all? { |group| evaluated?(group) } }
    rules = found["groups"].flat_map { |group| group["rules"] }

    assert_equal [["ok", nil]], rules.map { |rule| [rule["health"], rule["lastError"]] }.uniq
    assert_equal ["inactive"], rules.map { |rule| rule["state"] }.uniq
  ensure
    prometheus&.stop
    served&.stop
  end

  private

  def evaluated?(group) = group["rules"].none? { |rule| rule["health"] == "unknown" }

  # The port of the control socket is in the server's output.
  def serve
    @control = "127.0.0.1:#{FreePort.find}"
    ServedProcess.new([*ServedProcess::HEDDLE, "serve", File.join(ROOT, "examples/plain/config.ru"), "-p", "0", "-w",
                       "2", "--control", "tcp://#{@control}", "-e", "production"])
  end
end
