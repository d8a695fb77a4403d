# frozen_string_literal: true

require "bugsnag"

Bugsnag.configure do |config|
  config.api_key = "0123456789abcdef0123456789abcdef"
  config.set_endpoints("http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}/notify",
                       "http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}/sessions")
end

module Vendor
  def self.middleware = [Bugsnag::Rack]

  def self.mark(name, mark)
    Bugsnag.leave_breadcrumb(mark)
    Bugsnag.notify(RuntimeError.new("error #{mark}")) if name == :second
  end
end
