# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/prometheus_text"
require_relative "served_folder"

# The pools of an application, as `heddle status` and /metrics show them while a task waits.
class PoolsShownTest < Minitest::Test
  include ServedFolder

  APPLICATION = <<~RUBY
    THINGS = Heddle::Pool.new(max: 1, timeout: 600, name: "things") { Object.new }
    run do |env|
      THINGS.with do
        File.write("arrived", "")
        sleep 0.01 until File.exist?("go")
      end
      [200, {}, []]
    end
  RUBY

  LINE = /^ *0 +1 of 1 in use, limit 1, 1 waiting; waits: 1, \S+ \S+ in total +things \(heddle\)$/

  def setup
    super
    Dir.mkdir(file("tmp"))
    File.write(file("config.ru"), APPLICATION)
    start("serve")
    @sockets = Array.new(2) { waiting_request("/") }
  end

  def teardown
    File.write(file("go"), "")
    @sockets.each(&:close)
    super
  end

  def test_status_and_metrics_show_a_pool_and_the_task_that_waits
    wait_until { heddle_output("status").match?(LINE) }

    assert_match(/^pools\n#{LINE}/, heddle_output("status"))
    assert_equal [1.0, 0.0, 1.0, 1.0], [metric("resources", state: "busy"), metric("resources", state: "idle"),
                                        metric("tasks_waiting"), metric("waits_total")]
  end

  private

  def metric(name, **labels)
    labels = { worker: "0", pool: "things", library: "heddle", **labels }
    metrics.fetch("heddle_pool_#{name}").fetch(labels.transform_keys(&:to_s))
  end

  def metrics
    @metrics ||= UNIXSocket.open(file("tmp/heddle-control.sock")) do |socket|
      socket.write("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      PrometheusText.parse(socket.read.split("\r\n\r\n", 2).last)
    end
  end
end
