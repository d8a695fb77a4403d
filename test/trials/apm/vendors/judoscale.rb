# frozen_string_literal: true

require "judoscale-rack"

Judoscale.configure do |config|
  config.api_base_url = "http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}"
  config.current_runtime_container = Judoscale::Config::RuntimeContainer.new("web.1")
  config.report_interval_seconds = 1
end

module Vendor
  def self.middleware = [Judoscale::RequestMiddleware]

  # It counts times of requests without a name.
  def self.mark(*) = nil
end
