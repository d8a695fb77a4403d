# frozen_string_literal: true

require "tilt"
require "tilt/erb"

# Other requests run while a template is compiled.
Tilt::ERBTemplate.prepend(Module.new do
  private

  def unbind_compiled_method(name)
    sleep 0.01
    super
  end
end)

run(lambda do |env|
  text = env["QUERY_STRING"]
  [200, {}, [Tilt::ERBTemplate.new { "<%= 1 %> #{text}" }.render]]
end)
