# frozen_string_literal: true

# Not by autoload: the extension has defined this class.
require "heddle/http/h2/exchange"
