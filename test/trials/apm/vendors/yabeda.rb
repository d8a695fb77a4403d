# frozen_string_literal: true

require "yabeda/prometheus"
require "prometheus/client/data_stores/direct_file_store"
require "yabeda/rack/queue"

# The files of all workers are added up.
Prometheus::Client.config.data_store = Prometheus::Client::DataStores::DirectFileStore.new(dir: ENV.fetch("APM_FOLDER"))
Yabeda.configure do
  group(:probe) do
    counter :requests, tags: [:mark], comment: "requests by their marks"
    gauge :workers, tags: [], aggregation: :max, comment: "of Heddle.stats"
  end
  collect { probe.workers.set({}, Heddle.stats[:workers]) }
end
Yabeda.configure!

module Vendor
  def self.middleware = [Yabeda::Rack::Queue::Middleware]

  def self.map(builder) = builder.use(Yabeda::Prometheus::Exporter, path: "/metrics")

  def self.mark(name, mark) = name == :second ? Yabeda.probe.requests.increment({ mark: }) : nil
end
