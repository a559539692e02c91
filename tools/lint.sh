lint() { :; }
