# frozen_string_literal: true

require "net/http"
require "opentelemetry/instrumentation/net/http"
require_relative "../spans"

Spans.of("OpenTelemetry::Instrumentation::Net::HTTP")
proves_together("Net::HTTP") { |url| Net::HTTP.get(URI(url)) }
Spans::EXPORTER.reset
Spans.prove("url.path") { |number| Net::HTTP.get(URI("#{STAND_IN}/echo/#{number}")) }
