# frozen_string_literal: true

run(lambda do |env|
  case env["PATH_INFO"]
  when "/load"
    require "concurrent"
    require "rack-timeout"
    Rack::Timeout::Logger.disable
    TENANT = Concurrent::ThreadLocalVar.new("none")
    LIMITED = Rack::Timeout.new(->(_env) { sleep }, service_timeout: 0.02, wait_timeout: false)
  when "/tenant"
    before = TENANT.value
    TENANT.value = "somebody"
    next [200, {}, [before]]
  when "/limited"
    begin
      LIMITED.call(env)
    rescue Rack::Timeout::RequestTimeoutError
      next [503, {}, []]
    end
  when "/sequel" then require "sequel"
  when "/odd" then load File.expand_path("odd_version.rb", __dir__)
  end
  [200, {}, []]
end)
