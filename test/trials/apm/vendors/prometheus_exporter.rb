# frozen_string_literal: true

require "prometheus_exporter"
require "prometheus_exporter/client"
require "prometheus_exporter/middleware"

PrometheusExporter::Client.default =
  PrometheusExporter::Client.new(host: "127.0.0.1", port: Integer(ENV.fetch("COLLECTOR_PORT")))

module Vendor
  # As a line of its protocol, a request each.
  def self.middleware = [PrometheusExporter::Middleware, { instrument: nil }]

  def self.mark(*) = nil
end
