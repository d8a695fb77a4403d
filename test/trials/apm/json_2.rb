# frozen_string_literal: true

# elastic-apm calls a method that the gem json has no more since version 3. A Gemfile would name the older one.
gem "json", "< 3"
