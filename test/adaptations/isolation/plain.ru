# frozen_string_literal: true

# Thread variables that an application made up.

run(lambda do |env|
  id = env["QUERY_STRING"]
  thread = Thread.current
  before = thread.thread_variable_get("tenant")
  thread.thread_variable_set(:tenant, id)
  thread.thread_variable_set("nothing", nil)
  sleep 0.05
  [200, {}, ["#{before}#{thread.thread_variable_get("tenant")} #{thread.thread_variable?(:tenant)} " \
             "#{thread.thread_variable?(:nothing)}"]]
end)
