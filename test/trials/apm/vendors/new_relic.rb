# frozen_string_literal: true

require "newrelic_rpm"

module Vendor
  def self.wrap(application) = NewRelic::Agent::Instrumentation::MiddlewareProxy.wrap(application, true)

  def self.mark(name, mark) = NewRelic::Agent.add_custom_attributes(name => mark)
end
