# frozen_string_literal: true

require "rack-timeout"

Rack::Timeout::Logger.disable
STATES = Hash.new { |all, id| all[id] = [] }
Rack::Timeout.register_state_change_observer(:test) do |env|
  STATES[env["PATH_INFO"]] << env["rack-timeout.info"].state
end
rescue_errors = Class.new do
  def initialize(app) = @app = app

  def call(env)
    @app.call(env)
  rescue Rack::Timeout::RequestTimeoutError, Rack::Timeout::RequestExpiryError => e
    [503, {}, ["#{e.class}: #{e.message}"]]
  end
end
use rescue_errors
use Rack::Timeout, service_timeout: 2, wait_timeout: 60, **(ENV["TERM_AFTER"] ? { term_on_timeout: 1 } : {})
run(lambda do |env|
  case env["PATH_INFO"]
  when "/sleep" then sleep
  when "/compute"
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) - start < 20
  when "/rescue"
    begin
      sleep
    rescue Rack::Timeout::RequestTimeoutException => e
      next [200, {}, ["rescued: #{e.message}, #{e.env["PATH_INFO"]}"]]
    end
  when "/states" then next [200, {}, [STATES[env["QUERY_STRING"]].uniq.join(" ")]]
  when "/threads"
    next [200, {}, [Thread.list.flat_map { |one| one.backtrace.to_a.grep(%r{timeout/support/scheduler}) }.join]]
  end
  3.times { sleep 0.01 }
  [200, {}, ["own"]]
end)
