# frozen_string_literal: true

# Ruby loads RubyGems before a file that RUBYOPT names, and finds it in a folder that RUBYOPT names: this one. So what
# Ruby itself loads at its start is kept, too: a third of that start.
require_relative "../code_cache"
$LOAD_PATH.reject! { |folder| File.identical?(File.join(folder, "rubygems.rb"), __FILE__) }
require "rubygems"
