# frozen_string_literal: true

require "newrelic_rpm"

LOADED_IN = Process.pid
run(lambda do |_env|
  threads = Thread.list.count { |thread| thread[:newrelic_label] }
  [200, {}, ["#{NewRelic::Agent.config[:dispatcher].inspect} #{ENV.key?("NEW_RELIC_DISPATCHER")} " \
             "#{Process.pid == LOADED_IN} #{threads}"]]
end)
