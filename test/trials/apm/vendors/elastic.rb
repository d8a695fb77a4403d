# frozen_string_literal: true

require "elastic-apm"

ElasticAPM.start(server_url: "http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}", service_name: "probe",
                 api_request_time: "1s", central_config: false, cloud_provider: "none", metrics_interval: "0s")

module Vendor
  def self.middleware = [ElasticAPM::Middleware]

  def self.mark(name, mark) = ElasticAPM.set_label(name, mark)
end
